//! No payload byte is shown or logged, whatever is asked and however much is said (I-13).

use crate::endpoint::Endpoint;
use crate::place::{Place, QUICK_POLICY, destination, event};

const CANARY: &str = "canary-7c1d-PAYLOAD";

#[test]
fn no_payload_byte_is_ever_printed() {
    let endpoint = Endpoint::start();
    let place = Place::with(&format!(
        "{QUICK_POLICY}{}{}",
        destination("hook", "webhook", "tolerated", "t.*", &endpoint.settings("hook")),
        destination("pay", "webhook", "harmful", "pay.*", &endpoint.settings("pay")),
    ));
    endpoint.answers("hook", 400);
    endpoint.answers("pay", 0);
    let data = format!("{{\"secret\":\"{CANARY}\"}}");
    let broken = format!("{{\"specversion\":\"1.0\",\"{CANARY}\":");
    let input = format!("{}{}{broken}\n", event("a", "t.x", &data), event("b", "pay.x", &data));

    let mut ran = vec![place.dlo_reading(&input, &["-vvv", "enqueue", "-", "--each"])];
    let conflicting = event("a", "t.x", &format!("[\"{CANARY}\"]"));
    ran.push(place.dlo_reading(&conflicting, &["-vvv", "enqueue", "-"]));
    ran.push(place.dlo(&["-vvv", "--log-format", "json", "run", "--until-empty", "--metrics-file", "dlo.prom"]));
    let sent = endpoint.requests();
    assert!(sent.iter().any(|request| String::from_utf8_lossy(&request.body).contains(CANARY)), "it was delivered");

    for args in [
        vec!["entries", "list"],
        vec!["dead-letters", "list"],
        vec!["dead-letters", "groups"],
        vec!["destinations", "show", "hook"],
        vec!["destinations", "list"],
        vec!["stats"],
        vec!["stats", "--openmetrics"],
        vec!["audit", "list"],
        vec!["doctor"],
        vec!["workers"],
    ] {
        for format in ["table", "json"] {
            let args: Vec<&str> = ["-vvv", "--output", format].iter().chain(&args).copied().collect();
            ran.push(place.dlo(&args).ends(0));
        }
    }
    for row in place.json(&["dead-letters", "list"]).as_array().unwrap() {
        for format in ["table", "json"] {
            let letter = row["dead_letter"].as_str().unwrap();
            ran.push(place.dlo(&["-vvv", "-o", format, "dead-letters", "show", letter]).ends(0));
            ran.push(place.dlo(&["-vvv", "-o", format, "entries", "show", row["entry"].as_str().unwrap()]).ends(0));
        }
    }
    assert_eq!(place.json(&["dead-letters", "list"]).as_array().unwrap().len(), 2);
    for ran in ran {
        assert!(!ran.out.contains(CANARY), "on stdout: {}", ran.out);
        assert!(!ran.err.contains(CANARY), "on stderr: {}", ran.err);
    }
    assert!(!place.read("dlo.prom").contains(CANARY));
}
