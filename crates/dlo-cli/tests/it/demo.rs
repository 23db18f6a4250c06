//! The demo is a promise of the README: it runs, holds what it says, and leaves something to be looked at.

use std::path::Path;

use crate::place::Place;

#[test]
fn the_demo_holds_every_promise_and_leaves_its_folder() {
    let place = Place::empty();
    let ran = place.dlo(&["--output", "json", "demo"]).ends(0);
    let report = ran.json();
    assert_eq!(report["entries"].as_array().unwrap().len(), 23);
    assert!(report["checks"].as_array().unwrap().iter().all(|check| check["held"] == true), "{report:#}");
    for did in ["429", "500", "400", "401", "hang", "cut", "503", "204 (slow)"] {
        let shown = report["entries"].as_array().unwrap().iter().any(|entry| {
            entry["receiver"].as_array().unwrap().iter().any(|label| label.as_str().unwrap().starts_with(did))
        });
        assert!(shown, "the receiver never did {did}");
    }

    let folder = Path::new(report["folder"].as_str().unwrap());
    assert_eq!(folder.parent(), Some(place.path("dlo-demo").canonicalize().unwrap().as_path()));
    let config = folder.join("dlo.toml");
    let config = config.to_str().unwrap();
    assert_eq!(place.json(&["--config", config, "entries", "list"]).as_array().unwrap().len(), 23);
    place.dlo(&["--config", config, "doctor"]).ends(0);
    let open = place.json(&["--config", config, "dead-letters", "list", "--state", "open"]);
    assert_eq!(open.as_array().unwrap().len(), 3);
}
