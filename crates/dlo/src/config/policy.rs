//! The delivery policy: defaults for every destination, and what one destination has of its own.

use dlo_core::{DeliveryPolicy, policy::BreakerPolicy};
use toml::de::DeTable;

use super::reader::{Reader, Section};

/// Reads a policy over `base`. `prefix` is `policy.` or `destinations.<name>.policy.`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    prefix: &str,
    table: Option<&DeTable<'_>>,
    base: &DeliveryPolicy,
    is_base: bool,
) -> DeliveryPolicy {
    let mut section = section(reader, prefix, table, is_base);
    let dead_letter = section.value("dead_letter_on_max_retry_attempts", base.dead_letter_on_max_retry_attempts);
    // A destination that turns dead-lettering on again has no use for the alternative that it would inherit.
    let inherited = base.alternative.filter(|_| !dead_letter);
    let alternative = section.optional("alternative").or(inherited);
    let breaker_table = section.subtable("breaker");
    let policy = DeliveryPolicy {
        max_retry_attempts: section.value("max_retry_attempts", base.max_retry_attempts),
        dead_letter_on_max_retry_attempts: dead_letter,
        alternative,
        dead_letter_reason_code: section.value("dead_letter_reason_code", base.dead_letter_reason_code.clone()),
        dead_letter_reason_message: section
            .value("dead_letter_reason_message", base.dead_letter_reason_message.clone()),
        retry_delay: section.value("retry_delay", base.retry_delay),
        deferred_delay: section.value("deferred_delay", base.deferred_delay),
        schedule: section.value("schedule", base.schedule.clone()),
        jitter: section.value("jitter", base.jitter),
        retry_after_cap: section.value("retry_after_cap", base.retry_after_cap),
        max_age: section.value("max_age", base.max_age),
        max_crashed_attempts: section.value("max_crashed_attempts", base.max_crashed_attempts),
        backlog_limit: section.value("backlog_limit", base.backlog_limit),
        resource_failures: section.value("resource_failures", base.resource_failures),
        emission_deadline: section.value("emission_deadline", base.emission_deadline),
        concurrency: section.value("concurrency", base.concurrency),
        page: section.value("page", base.page),
        breaker: base.breaker,
    };
    section.finish();
    let breaker = read_breaker(reader, &format!("{prefix}breaker."), breaker_table, base.breaker, is_base);
    DeliveryPolicy { breaker, ..policy }
}

fn read_breaker(
    reader: &mut Reader<'_>,
    prefix: &str,
    table: Option<&DeTable<'_>>,
    base: BreakerPolicy,
    is_base: bool,
) -> BreakerPolicy {
    let mut section = section(reader, prefix, table, is_base);
    let breaker = BreakerPolicy {
        failures: section.value("failures", base.failures),
        entries: section.value("entries", base.entries),
        probe_min: section.value("probe_min", base.probe_min),
        probe_max: section.value("probe_max", base.probe_max),
    };
    section.finish();
    breaker
}

fn section<'r, 'a, 't>(
    reader: &'r mut Reader<'a>,
    prefix: &str,
    table: Option<&'t DeTable<'t>>,
    is_base: bool,
) -> Section<'r, 'a, 't> {
    let section = Section::new(reader, prefix, table);
    if is_base { section } else { section.inheriting() }
}
