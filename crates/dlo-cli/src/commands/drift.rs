//! Destinations of the configuration file that the store does not know as they are written.

use dlo::{Config, Outbox};

use super::destinations;
use crate::failure::Result;

/// Sentences about each of them. The file is input to `dlo destinations apply` only, which is easy to forget.
pub(crate) async fn between(config: &Config, outbox: &Outbox) -> Result<Vec<String>> {
    if config.destinations.is_empty() {
        return Ok(Vec::new());
    }
    let stored = destinations::all(outbox, None).await?;
    let drift = config.destinations.iter().filter_map(|spec| {
        let twin = stored
            .iter()
            .map(|view| &view.destination.spec)
            .find(|twin| (&twin.tenant, &twin.name) == (&spec.tenant, &spec.name));
        let what = match twin {
            None => "is in the configuration file and not in the store",
            Some(twin) if twin != spec => "is otherwise in the configuration file than in the store",
            Some(_) => return None,
        };
        Some(format!(
            "destination `{}` of tenant `{}` {what}: `dlo destinations apply` saves it",
            spec.name, spec.tenant
        ))
    });
    Ok(drift.collect())
}
