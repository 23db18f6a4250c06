//! The oracle agrees with itself, and its sequences meet what a real store should be compared in.

use dlo_ports::conformance::oracle::check;

#[test]
fn sequences_meet_everything_with_many_engines() {
    let unmet = check(128, 80, [1; 32], &crate::harness::many_engines, &crate::harness::many_engines);
    assert!(unmet.is_empty(), "no sequence met {unmet:?}");
}

#[test]
fn sequences_meet_everything_with_one_engine() {
    let unmet = check(128, 80, [2; 32], &crate::harness::one_engine, &crate::harness::one_engine);
    assert!(unmet.is_empty(), "no sequence met {unmet:?}");
}
