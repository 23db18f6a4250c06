//! dlo-sqlite
