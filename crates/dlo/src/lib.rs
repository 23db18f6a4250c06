//! dlo
