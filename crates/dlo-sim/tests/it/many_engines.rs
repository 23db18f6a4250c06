//! A store that admits many engines.

dlo_ports::conformance_suite!(crate::harness::many_engines);
