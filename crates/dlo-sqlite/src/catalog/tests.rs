//! What is kept, and what is not.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::testing::{MAIN, World, name, tenant};

#[test]
fn tenants_that_were_only_asked_for_leave_nothing_behind() {
    let world = World::new();
    let mut catalog = Catalog::default();
    catalog.refresh(&world.conn).unwrap();
    for number in 0..10 {
        let stranger = TenantId::new(&format!("stranger-{number}")).unwrap();
        assert_eq!(catalog.find(&world.conn, &stranger, &name(MAIN)).unwrap(), None);
        assert!(catalog.takers(&world.conn, &stranger, "test.happened").unwrap().is_empty());
    }
    assert_eq!(catalog.find(&world.conn, &tenant(), &name("nowhere")).unwrap(), None);
    assert!(catalog.known.is_empty());
    assert!(catalog.find(&world.conn, &tenant(), &name(MAIN)).unwrap().is_some());
    assert_eq!(catalog.known.len(), 1);
}

#[test]
fn a_full_catalog_is_emptied_before_it_grows() {
    let world = World::new();
    let mut catalog = Catalog::default();
    catalog.refresh(&world.conn).unwrap();
    let one = catalog.find(&world.conn, &tenant(), &name(MAIN)).unwrap().unwrap().clone();
    let many = OfTenant {
        destinations: (0..MAX_KEPT).map(|number| (name(&format!("d-{number}")), one.clone())).collect(),
        complete: false,
    };
    catalog.known = BTreeMap::from([(TenantId::new("large").unwrap(), many)]);
    assert_eq!(catalog.find(&world.conn, &tenant(), &name(MAIN)).unwrap(), Some(&one));
    assert_eq!(catalog.known.keys().collect::<Vec<_>>(), [&tenant()]);
}
