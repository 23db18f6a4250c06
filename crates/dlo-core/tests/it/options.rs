//! Options: one case per rule; each error names option, value and rule (P-03, trap D23).

use core::time::Duration;

use dlo_core::{
    EngineOptions, OptionError, Reason, WorkerId,
    policy::{Alternative, DeliveryPolicy, MAX_DURATION},
    text::ErrorText,
};

fn refused(change: impl FnOnce(&mut DeliveryPolicy)) -> OptionError {
    let mut policy = DeliveryPolicy::default();
    change(&mut policy);
    policy.validate().expect_err("must be refused")
}

fn check(error: &OptionError, option: &str, value: &str) {
    assert_eq!((error.option, error.value.as_str()), (option, value));
    assert!(!error.rule.is_empty());
    let text = error.to_string();
    assert!(text.contains(option) && text.contains(value) && text.contains(error.rule), "{text}");
}

#[test]
fn defaults_are_those_of_the_design() {
    let policy = DeliveryPolicy::default();
    policy.validate().unwrap();
    assert_eq!((policy.max_retry_attempts, policy.concurrency, policy.page), (5, 16, 100));
    assert!(policy.dead_letter_on_max_retry_attempts);
    assert_eq!(policy.dead_letter_reason_code.as_str(), "outbox.max_retry_attempts_exceeded");
    assert_eq!(policy.schedule.iter().map(|d| d.as_secs() / 60).collect::<Vec<_>>(), [1, 5, 25, 125]);
    assert_eq!((policy.breaker.failures, policy.breaker.entries, policy.max_crashed_attempts), (5, 3, 3));
}

#[test]
fn every_rule_of_a_delivery_policy() {
    let long = MAX_DURATION + Duration::from_nanos(1);
    check(&refused(|p| p.max_retry_attempts = 0), "max_retry_attempts", "0");
    check(&refused(|p| p.dead_letter_on_max_retry_attempts = false), "dead_letter_on_max_retry_attempts", "false");
    check(&refused(|p| p.alternative = Some(Alternative::MaxAge)), "alternative", "Some(MaxAge)");
    check(&refused(|p| p.dead_letter_reason_message = ErrorText::new(" ")), "dead_letter_reason_message", "\" \"");
    check(&refused(|p| p.schedule = Vec::new()), "schedule", "0");
    check(&refused(|p| p.schedule = vec![Duration::ZERO; 33]), "schedule", "33");
    check(&refused(|p| p.schedule = vec![long]), "schedule", &format!("{long:?}"));
    check(&refused(|p| p.retry_delay = long), "retry_delay", &format!("{long:?}"));
    check(&refused(|p| p.deferred_delay = long), "deferred_delay", &format!("{long:?}"));
    check(&refused(|p| p.retry_after_cap = long), "retry_after_cap", &format!("{long:?}"));
    check(&refused(|p| p.max_age = Duration::ZERO), "max_age", "0ns");
    check(&refused(|p| p.max_age = long), "max_age", &format!("{long:?}"));
    check(&refused(|p| p.max_crashed_attempts = 0), "max_crashed_attempts", "0");
    check(&refused(|p| p.backlog_limit = 0), "backlog_limit", "0");
    check(&refused(|p| p.resource_failures = 0), "resource_failures", "0");
    check(&refused(|p| p.resource_failures = 65), "resource_failures", "65");
    check(&refused(|p| p.breaker.failures = 0), "breaker.failures", "0");
    check(&refused(|p| p.breaker.failures = 1_001), "breaker.failures", "1001");
    check(&refused(|p| p.breaker.entries = 0), "breaker.entries", "0");
    check(&refused(|p| p.breaker.entries = 6), "breaker.entries", "6");
    check(&refused(|p| p.breaker.probe_min = Duration::ZERO), "breaker.probe_min", "0ns");
    check(&refused(|p| p.breaker.probe_min = Duration::from_mins(6)), "breaker.probe_min", "360s");
    check(&refused(|p| p.emission_deadline = Duration::ZERO), "emission_deadline", "0ns");
    check(&refused(|p| p.emission_deadline = Duration::from_secs(3_601)), "emission_deadline", "3601s");
    check(&refused(|p| p.concurrency = 0), "concurrency", "0");
    check(&refused(|p| p.concurrency = 1_001), "concurrency", "1001");
    check(&refused(|p| p.page = 0), "page", "0");
    check(&refused(|p| p.page = 1_001), "page", "1001");
}

#[test]
fn zero_delays_are_allowed() {
    let policy = DeliveryPolicy {
        retry_delay: Duration::ZERO,
        deferred_delay: Duration::ZERO,
        schedule: vec![Duration::ZERO],
        ..DeliveryPolicy::default()
    };
    policy.validate().unwrap();
}

#[test]
fn the_smallest_and_largest_values_are_allowed() {
    let mut policy = DeliveryPolicy { max_retry_attempts: 1, concurrency: 1, page: 1, ..DeliveryPolicy::default() };
    policy.breaker.failures = 1;
    policy.breaker.entries = 1;
    policy.resource_failures = 1;
    policy.validate().unwrap();
    policy.concurrency = 1_000;
    policy.page = 1_000;
    policy.breaker.failures = 1_000;
    policy.breaker.entries = 64;
    policy.resource_failures = 64;
    policy.max_age = MAX_DURATION;
    policy.emission_deadline = Duration::from_hours(1);
    policy.validate().unwrap();
}

#[test]
fn a_blank_reason_code_can_not_be_made() {
    for code in ["", " ", "Upper", "a b", "a-b"] {
        assert!(Reason::new(code).is_err(), "{code:?}");
    }
}

#[test]
fn every_rule_of_engine_options() {
    let refused = |change: fn(&mut EngineOptions)| {
        let mut options = EngineOptions::new(WorkerId::new("worker").unwrap());
        change(&mut options);
        options.validate().expect_err("must be refused")
    };
    EngineOptions::new(WorkerId::new("worker").unwrap()).validate().unwrap();
    check(&refused(|o| o.lease = Duration::from_millis(999)), "lease", "999ms");
    check(&refused(|o| o.lease = Duration::from_secs(86_401)), "lease", "86401s");
    check(&refused(|o| o.idle_poll = Duration::ZERO), "idle_poll", "0ns");
    check(&refused(|o| o.idle_poll = Duration::from_secs(61)), "idle_poll", "61s");
    check(&refused(|o| o.shutdown_grace = Duration::from_secs(3_601)), "shutdown_grace", "3601s");
    check(&refused(|o| o.history = MAX_DURATION * 11), "history", "347846400s");
    check(&refused(|o| o.enqueue_key_window = Duration::from_hours(1)), "enqueue_key_window", "3600s");
    assert!(WorkerId::new("").is_err() && WorkerId::new(" ").is_err());
}

#[test]
fn a_lease_must_hold_a_full_page() {
    let options = EngineOptions::new(WorkerId::new("worker").unwrap());
    let policy = DeliveryPolicy::default();
    options.validate_against(&policy).unwrap();
    let slow = DeliveryPolicy { concurrency: 1, ..policy };
    check(&options.validate_against(&slow).unwrap_err(), "lease", "300s");
}
