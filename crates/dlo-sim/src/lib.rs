//! dlo-sim
