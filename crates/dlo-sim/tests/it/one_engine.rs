//! A store that admits one engine, as an embedded one does.

dlo_ports::conformance_suite!(crate::harness::one_engine);
