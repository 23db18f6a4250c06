//! dlo-office
