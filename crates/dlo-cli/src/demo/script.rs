//! What the demo's receiver does on purpose, and what must come of it.

use core::time::Duration;

/// What the receiver does with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Takes it and answers 204.
    Accept,
    /// Takes it and answers 204 after a while, within the deadline.
    AcceptSlowly(Duration),
    /// Does not take it: answers 429 and names the seconds to wait.
    TooMany(u64),
    /// Does not take it: answers this status.
    Answer(u16),
    /// Takes it and never answers.
    Hang,
    /// Takes it and cuts the connection once the body was read.
    Cut,
}

impl Behaviour {
    /// Whether the receiver acts on the request, whatever it answers.
    pub(crate) const fn takes(self) -> bool {
        matches!(self, Self::Accept | Self::AcceptSlowly(_) | Self::Hang | Self::Cut)
    }

    /// Whether the sender is told that it was taken.
    pub(crate) const fn says_so(self) -> bool {
        matches!(self, Self::Accept | Self::AcceptSlowly(_))
    }

    /// A few letters for the table.
    pub(crate) fn label(self) -> String {
        match self {
            Self::Accept => "204".to_owned(),
            Self::AcceptSlowly(_) => "204 (slow)".to_owned(),
            Self::TooMany(seconds) => format!("429 (wait {seconds} s)"),
            Self::Answer(status) => status.to_string(),
            Self::Hang => "hang".to_owned(),
            Self::Cut => "cut".to_owned(),
        }
    }
}

/// Something that is broken until the demo mends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The mail service refuses our credentials.
    MailCredentials,
    /// The warehouse is down.
    WarehouseDown,
    /// The visit counter refuses numbers that are written as text.
    VisitSchema,
}

impl Fault {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::MailCredentials, Self::WarehouseDown, Self::VisitSchema];

    /// The path, the event (all if none), and the status that it answers with until it is mended.
    pub(crate) const fn shows_as(self) -> (&'static str, Option<&'static str>, u16) {
        match self {
            Self::MailCredentials => ("mails", None, 401),
            Self::WarehouseDown => ("warehouse", None, 503),
            Self::VisitSchema => ("visits", Some("visit-4003"), 400),
        }
    }
}

/// Longest that the receiver waits before it answers slowly.
pub(crate) const SLOW: Duration = Duration::from_millis(600);

/// What it does with the first requests for one event; what follows is accepted.
pub(crate) const SCRIPT: [(&str, &str, &[Behaviour]); 11] = [
    ("orders", "order-1002", &[Behaviour::TooMany(2)]),
    ("orders", "order-1003", &[Behaviour::Answer(500), Behaviour::Answer(500)]),
    ("orders", "order-1004", &[Behaviour::Hang]),
    ("orders", "order-1005", &[Behaviour::Cut]),
    ("orders", "order-1001-shipped", &[Behaviour::AcceptSlowly(SLOW)]),
    ("payments", "payment-2002", &[Behaviour::TooMany(1)]),
    ("payments", "payment-2003", &[Behaviour::Cut]),
    ("payments", "payment-2004", &[Behaviour::Answer(500)]),
    ("payments", "payment-2005", &[Behaviour::AcceptSlowly(SLOW)]),
    ("visits", "visit-4002", &[Behaviour::Cut]),
    ("visits", "visit-4004", &[Behaviour::Answer(500); 8]),
];

/// What must have become of an event when the demo ends, before its redrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Delivered.
    Delivered,
    /// In quarantine for this code.
    DeadLettered(&'static str),
}

/// What must become of events; every other event must be delivered.
pub(crate) const EXPECTED_DEAD: [(&str, &str); 4] = [
    ("payment-2003", "outbox.outcome_ambiguous"),
    ("payment-2004", "outbox.outcome_ambiguous"),
    ("visit-4003", "http.bad_request"),
    ("visit-4004", "outbox.max_retry_attempts_exceeded"),
];

/// What must become of one event.
pub(crate) fn expected(event: &str) -> Expected {
    EXPECTED_DEAD
        .iter()
        .find(|(dead, _)| *dead == event)
        .map_or(Expected::Delivered, |(_, code)| Expected::DeadLettered(code))
}

/// What the script says about the given request of an event, if it says anything.
pub(crate) fn scripted(path: &str, event: &str, number: usize) -> Option<Behaviour> {
    let (_, _, behaviours) = SCRIPT.iter().find(|(at, of, _)| (*at, *of) == (path, event))?;
    behaviours.get(number).copied()
}
