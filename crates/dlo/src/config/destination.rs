//! The `[[destinations]]` of the file.

use core::ops::Range;

use dlo_core::{DeliveryPolicy, DestinationName, DestinationSpec, Duplicates, TenantId, destination::Pace};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, Section};
use super::setting::kind_of;
use super::{Origin, json, policy, secrets};

/// What destinations take from the rest of the file.
#[derive(Clone, Copy)]
pub(super) struct Defaults<'a> {
    pub(super) tenant: &'a TenantId,
    pub(super) policy: &'a DeliveryPolicy,
}

/// A destination with the prefix of its keys and its place in the file.
pub(super) struct Placed {
    pub(super) spec: DestinationSpec,
    pub(super) prefix: String,
    pub(super) span: Range<usize>,
}

/// Reads every destination; those that are not valid are left out, with their problems kept.
pub(super) fn read_all(
    reader: &mut Reader<'_>,
    value: Option<&Spanned<DeValue<'_>>>,
    defaults: Defaults<'_>,
) -> Vec<Placed> {
    let Some(value) = value else { return Vec::new() };
    let Some(items) = value.get_ref().as_array() else {
        let message = format!("must be written as `[[destinations]]`, one each, not as {}", kind_of(value.get_ref()));
        reader.problem_at(&value.span(), "destinations", message);
        return Vec::new();
    };
    let mut placed: Vec<Placed> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let Some(table) = item.get_ref().as_table() else {
            reader.problem_at(&item.span(), "destinations", "must be a table, one each");
            continue;
        };
        let Some(spec) = read(reader, at, table, item.span(), defaults) else { continue };
        let twin = placed.iter().find(|p| p.spec.name == spec.spec.name && p.spec.tenant == spec.spec.tenant);
        if twin.is_some() {
            let message = "is there twice: name each destination of a tenant once";
            reader.problem_at(&spec.span, spec.prefix.trim_end_matches('.'), message);
            continue;
        }
        placed.push(spec);
    }
    placed
}

fn read(
    reader: &mut Reader<'_>,
    at: usize,
    table: &DeTable<'_>,
    span: Range<usize>,
    defaults: Defaults<'_>,
) -> Option<Placed> {
    let prefix = prefix(at, table);
    let mut section = Section::new(reader, prefix.as_str(), Some(table)).inheriting();
    let name: Option<DestinationName> = section.optional("name");
    let tenant = section.optional("tenant").unwrap_or_else(|| defaults.tenant.clone());
    let emitter: Option<String> = section.optional("emitter");
    let duplicates: Option<Duplicates> = section.optional("duplicates");
    let settings_span = section.raw("settings").map_or(span.clone(), Spanned::span);
    let settings_table = section.subtable("settings");
    let pace_table = section.subtable("pace");
    let event_types = section.optional("event_types").unwrap_or_default();
    let owner = section.optional("owner");
    let region = section.optional("region");
    let policy_table = section.subtable("policy");
    section.finish();

    let given = |name: &str| table.iter().any(|(key, _)| key.get_ref() == name);
    for (key, rule) in [
        ("name", "is required: it names the destination within its tenant"),
        ("emitter", "is required: `webhook`, `noop`, or a kind of the embedding application"),
        ("duplicates", "is required: what a duplicate does there: `harmful`, `tolerated` or `deduplicated(24h)`"),
    ] {
        if !given(key) {
            reader.problem_at(&span, &format!("{prefix}{key}"), rule);
        }
    }
    let pace = pace_table.map(|table| read_pace(reader, &prefix, table));
    let settings =
        settings_table.map_or(Some("{}".to_owned()), |table| read_settings(reader, &prefix, table, &settings_span));
    let policy = policy::read(reader, &format!("{prefix}policy."), policy_table, defaults.policy, false);
    let spec = DestinationSpec {
        tenant,
        name: name?,
        emitter: emitter?,
        settings: settings?,
        duplicates: duplicates?,
        policy,
        pace: pace.flatten(),
        event_types,
        owner,
        region,
    };
    Some(Placed { spec, prefix, span })
}

/// `destinations.billing.`, with the tenant if it has one of its own, or by number while it has no name.
fn prefix(at: usize, table: &DeTable<'_>) -> String {
    let text = |name: &str| {
        let found = table.iter().find(|(key, _)| key.get_ref() == name);
        found.and_then(|(_, value)| value.get_ref().as_str())
    };
    match (text("tenant"), text("name").filter(|name| DestinationName::new(name).is_ok())) {
        (Some(tenant), Some(name)) if TenantId::new(tenant).is_ok() => format!("destinations.{tenant}/{name}."),
        (_, Some(name)) => format!("destinations.{name}."),
        (_, None) => format!("destinations[{at}]."),
    }
}

fn read_pace(reader: &mut Reader<'_>, prefix: &str, table: &DeTable<'_>) -> Option<Pace> {
    let mut section = Section::new(reader, format!("{prefix}pace."), Some(table)).inheriting();
    let per_minute = section.optional("per_minute");
    let burst = section.value("burst", 1);
    if per_minute.is_none() && section.raw("per_minute").is_none() {
        let keys = [section.key("per_minute"), section.key("burst")];
        section.reader.problem_of(&keys, "is required in a pace");
    }
    section.finish();
    Some(Pace { per_minute: per_minute?, burst })
}

fn read_settings(reader: &mut Reader<'_>, prefix: &str, table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let key = format!("{prefix}settings");
    secrets::refuse_inline(reader, &format!("{key}."), table);
    match json::object(table) {
        Ok(settings) => {
            let line = reader.file.map_or(0, |file| file.position(span).0);
            let path = reader.file.map(|file| file.path.clone()).unwrap_or_default();
            let mut section = Section::new(reader, prefix, None);
            section.show("settings", settings.clone(), &Origin::File { path, line });
            Some(settings)
        }
        Err(rule) => {
            reader.problem_at(span, &key, rule);
            None
        }
    }
}
