//! Options: the delivery policy of a destination and the options of an engine, each validated when resolved (P-03).

use core::time::Duration;

use crate::{Reason, limits, reason, text::ErrorText};

/// An option has a value that its rule does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option `{option}` is {value}: {rule}")]
pub struct OptionError {
    /// Name of the option, as in the file.
    pub option: &'static str,
    /// The value that was seen.
    pub value: String,
    /// The rule and the way out.
    pub rule: &'static str,
}

/// What ends an entry whose allowance is used up when `dead_letter_on_max_retry_attempts` is false (P-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// Retried by the last delay of the schedule until `max_age` ends it.
    MaxAge,
    /// Set aside for a person.
    ManualReview,
}

/// How delays are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// Half the delay is fixed, half is random: never shorter than half, never longer than the delay.
    Equal,
    /// Exactly the schedule; for tests and demonstrations.
    None,
}

/// The breaker of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Consecutive transient failures that open it (default 5, at least 1).
    pub failures: u32,
    /// Distinct entries that they must come from (default 3; 1 when fewer are waiting).
    pub entries: u32,
    /// First wait before a probe (default 30 s).
    pub probe_min: Duration,
    /// Longest wait between probes (default 5 min); waits double in between.
    pub probe_max: Duration,
}

/// How one destination's entries are tried, retried and given up. Seed 000's options are the first six fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryPolicy {
    /// Failed attempts that a generation may use; the failure in hand counts (P-01). Default 5, at least 1.
    pub max_retry_attempts: u32,
    /// Dead-letter when the allowance is used up (P-02). Default true.
    pub dead_letter_on_max_retry_attempts: bool,
    /// Named alternative, required when the option above is false.
    pub alternative: Option<Alternative>,
    /// Reason code of that dead letter (P-03). Default `outbox.max_retry_attempts_exceeded`.
    pub dead_letter_reason_code: Reason,
    /// Its message, not blank.
    pub dead_letter_reason_message: ErrorText,
    /// Floor of every retry delay (default 1 min; zero allowed).
    pub retry_delay: Duration,
    /// Delay of pending and deferred outcomes without a time (default 1 min; zero allowed).
    pub deferred_delay: Duration,
    /// Delay after the first, second … failed attempt (default 1, 5, 25, 125 min); the last repeats.
    pub schedule: Vec<Duration>,
    /// How delays are spread (default equal).
    pub jitter: Jitter,
    /// Longest `Retry-After` that is honoured (default 24 h).
    pub retry_after_cap: Duration,
    /// Age at which an entry ends, from the later of generation start and `not_before` (default 7 d).
    pub max_age: Duration,
    /// Crashes as the only suspect before `outbox.worker_lost` (default 3, at least 1).
    pub max_crashed_attempts: u32,
    /// Entries that may wait at this destination before enqueue is refused (default 10,000,000).
    pub backlog_limit: u64,
    /// Distinct entries that must meet 403, 404, 410 or 3xx before the destination is held (default 5).
    pub resource_failures: u32,
    /// Breaker.
    pub breaker: BreakerPolicy,
    /// Time that one emission may take (default 30 s).
    pub emission_deadline: Duration,
    /// Emissions in flight at once (default 16, at most 1,000).
    pub concurrency: u32,
    /// Entries claimed at once (default 100, at most 1,000).
    pub page: u32,
}

const MINUTE: Duration = Duration::from_mins(1);

impl Default for DeliveryPolicy {
    fn default() -> Self {
        Self {
            max_retry_attempts: 5,
            dead_letter_on_max_retry_attempts: true,
            alternative: None,
            dead_letter_reason_code: reason::MAX_RETRY_ATTEMPTS_EXCEEDED,
            dead_letter_reason_message: ErrorText::new("Outbox entry exceeded the configured maximum retry attempts."),
            retry_delay: MINUTE,
            deferred_delay: MINUTE,
            schedule: [1, 5, 25, 125].map(|minutes| MINUTE * minutes).to_vec(),
            jitter: Jitter::Equal,
            retry_after_cap: MINUTE * 60 * 24,
            max_age: MINUTE * 60 * 24 * 7,
            max_crashed_attempts: 3,
            backlog_limit: 10_000_000,
            resource_failures: 5,
            breaker: BreakerPolicy {
                failures: 5,
                entries: 3,
                probe_min: Duration::from_secs(30),
                probe_max: MINUTE * 5,
            },
            emission_deadline: Duration::from_secs(30),
            concurrency: 16,
            page: 100,
        }
    }
}

fn check(ok: bool, option: &'static str, value: impl core::fmt::Debug, rule: &'static str) -> Result<(), OptionError> {
    if ok { Ok(()) } else { Err(OptionError { option, value: format!("{value:?}"), rule }) }
}

/// Longest duration of any option: one year.
pub const MAX_DURATION: Duration = Duration::from_hours(366 * 24);

impl DeliveryPolicy {
    /// Checks every option and the relations between them (trap D23).
    pub fn validate(&self) -> Result<(), OptionError> {
        check(self.max_retry_attempts >= 1, "max_retry_attempts", self.max_retry_attempts, "must be at least 1")?;
        check(
            self.dead_letter_on_max_retry_attempts || self.alternative.is_some(),
            "dead_letter_on_max_retry_attempts",
            false,
            "needs `alternative = \"max_age\"` or `alternative = \"manual_review\"` beside it",
        )?;
        check(
            !(self.dead_letter_on_max_retry_attempts && self.alternative.is_some()),
            "alternative",
            self.alternative,
            "has no effect unless `dead_letter_on_max_retry_attempts = false`: remove one of the two",
        )?;
        check(
            !self.dead_letter_reason_message.is_blank(),
            "dead_letter_reason_message",
            self.dead_letter_reason_message.as_str(),
            "must not be blank",
        )?;
        check(
            !self.schedule.is_empty() && self.schedule.len() <= 32,
            "schedule",
            self.schedule.len(),
            "must have 1 to 32 delays",
        )?;
        for delay in &self.schedule {
            check(*delay <= MAX_DURATION, "schedule", delay, "each delay must be at most 366 days")?;
        }
        for (option, value) in [
            ("retry_delay", self.retry_delay),
            ("deferred_delay", self.deferred_delay),
            ("retry_after_cap", self.retry_after_cap),
        ] {
            check(value <= MAX_DURATION, option, value, "must be at most 366 days")?;
        }
        check(
            !self.max_age.is_zero() && self.max_age <= MAX_DURATION,
            "max_age",
            self.max_age,
            "must be more than zero and at most 366 days",
        )?;
        check(self.max_crashed_attempts >= 1, "max_crashed_attempts", self.max_crashed_attempts, "must be at least 1")?;
        check(self.backlog_limit >= 1, "backlog_limit", self.backlog_limit, "must be at least 1")?;
        check(
            (1..=64).contains(&self.resource_failures),
            "resource_failures",
            self.resource_failures,
            "must be 1 to 64",
        )?;
        let breaker = self.breaker;
        check((1..=1_000).contains(&breaker.failures), "breaker.failures", breaker.failures, "must be 1 to 1000")?;
        check(
            (1..=breaker.failures.min(64)).contains(&breaker.entries),
            "breaker.entries",
            breaker.entries,
            "must be 1 to 64 and not more than `breaker.failures`",
        )?;
        check(
            !breaker.probe_min.is_zero() && breaker.probe_min <= breaker.probe_max && breaker.probe_max <= MAX_DURATION,
            "breaker.probe_min",
            breaker.probe_min,
            "must be more than zero and not more than `breaker.probe_max`",
        )?;
        check(
            !self.emission_deadline.is_zero() && self.emission_deadline <= Duration::from_hours(1),
            "emission_deadline",
            self.emission_deadline,
            "must be more than zero and at most 1 h",
        )?;
        check((1..=1_000).contains(&self.concurrency), "concurrency", self.concurrency, "must be 1 to 1000")?;
        check((1..=limits::MAX_PAGE as u32).contains(&self.page), "page", self.page, "must be 1 to 1000")
    }

    /// Longest time that a full page may take: every emission uses its whole deadline.
    pub fn page_time(&self) -> Duration {
        self.emission_deadline * self.page.div_ceil(self.concurrency)
    }
}

/// How an engine claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainMode {
    /// Leases with a token as fence; any number of workers where the store allows it. Default.
    Claim,
    /// One worker by lock, a lease without end, the row version as fence (seed 002).
    Plain,
}

/// Options of one engine process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// Name of the worker, shown by `dlo workers`.
    pub worker: crate::WorkerId,
    /// How it claims (default claim).
    pub mode: DrainMode,
    /// Lease of a process; renewed at a third of it (default 5 min).
    pub lease: Duration,
    /// Longest wait before the store is asked again although nothing woke the engine (default 250 ms).
    pub idle_poll: Duration,
    /// How long a shutdown waits for emissions in flight before it cuts them (default 5 s).
    pub shutdown_grace: Duration,
    /// Delivered history is kept this long (default 7 d).
    pub history: Duration,
    /// Enqueue keys are kept this long; not shorter than `history` (default 30 d).
    pub enqueue_key_window: Duration,
    /// Only these tenants, if any (S-08).
    pub tenants: Vec<crate::TenantId>,
    /// Only these destinations, if any (S-08).
    pub destinations: Vec<crate::DestinationName>,
}

impl EngineOptions {
    /// Defaults for a named worker.
    pub fn new(worker: crate::WorkerId) -> Self {
        Self {
            worker,
            mode: DrainMode::Claim,
            lease: MINUTE * 5,
            idle_poll: Duration::from_millis(250),
            shutdown_grace: Duration::from_secs(5),
            history: MINUTE * 60 * 24 * 7,
            enqueue_key_window: MINUTE * 60 * 24 * 30,
            tenants: Vec::new(),
            destinations: Vec::new(),
        }
    }

    /// Checks every option and the relations between them.
    pub fn validate(&self) -> Result<(), OptionError> {
        check(
            self.lease >= Duration::from_secs(1) && self.lease <= Duration::from_hours(24),
            "lease",
            self.lease,
            "must be 1 s to 24 h",
        )?;
        check(
            self.idle_poll >= Duration::from_millis(1) && self.idle_poll <= MINUTE,
            "idle_poll",
            self.idle_poll,
            "must be 1 ms to 1 min",
        )?;
        check(
            self.shutdown_grace <= Duration::from_hours(1),
            "shutdown_grace",
            self.shutdown_grace,
            "must be at most 1 h",
        )?;
        check(self.history <= MAX_DURATION * 10, "history", self.history, "must be at most 10 years")?;
        check(
            self.enqueue_key_window >= self.history && self.enqueue_key_window <= MAX_DURATION * 10,
            "enqueue_key_window",
            self.enqueue_key_window,
            "must not be shorter than `history` and at most 10 years",
        )
    }

    /// Checks the lease against a destination's policy: a full page must fit in it (trap D23).
    pub fn validate_against(&self, policy: &DeliveryPolicy) -> Result<(), OptionError> {
        check(
            policy.page_time() <= self.lease,
            "lease",
            self.lease,
            "must be at least ceil(page / concurrency) x emission_deadline of every destination: raise the lease or \
             the concurrency, or lower the page or the deadline",
        )
    }
}
