//! dlo-webhook
