//! dlo-engine
