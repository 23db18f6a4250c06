//! Everything that can be read of a store, as text to compare.

use core::{fmt::Write, time::Duration};

use dlo_core::{EntryState, dead_letter::PayloadSummary};

use super::{super::bench::ALL, side::Side};
use crate::store::{DeadLetterFilter, DeadLetterView, EntryFilter, EntryView, EnvelopeView, Scope};

impl Side {
    /// The whole state, with names instead of ids.
    pub(super) fn dump(&self) -> String {
        let mut text = String::new();
        self.dump_entries(&mut text);
        self.dump_dead_letters(&mut text);
        self.dump_destinations(&mut text);
        self.dump_work(&mut text);
        self.dump_acts(&mut text);
        // A store's check may well say that something was damaged.
        if !self.damaged {
            let violations = self.get(|store| store.check(10));
            assert!(violations.is_empty(), "the store's own check found {violations:?}");
        }
        self.names.replace(&text)
    }

    fn dump_entries(&self, text: &mut String) {
        let rows = self.get(|store| store.entries(EntryFilter::default(), ALL)).rows;
        for row in rows {
            let view = self.get(|store| store.entry(row.key.tenant.clone(), row.key.entry)).expect("it is listed");
            assert_eq!(view.summary, row, "list and look-up must agree");
            write_to(text, format_args!("{:?}", self.comparable(view)));
        }
        for state in EntryState::ALL {
            let filter = EntryFilter { state: Some(state), ..EntryFilter::default() };
            let rows = self.get(|store| store.entries(filter, ALL)).rows;
            write_to(text, format_args!("{state}: {:?}", rows.iter().map(|row| row.seq).collect::<Vec<_>>()));
        }
        for (index, entry) in self.entries.iter().enumerate() {
            let stored = self.get(|store| store.entry(dlo_core::TenantId::default_tenant(), *entry)).is_some();
            write_to(text, format_args!("entry {index} is stored: {stored}"));
        }
    }

    fn dump_dead_letters(&self, text: &mut String) {
        let filter = DeadLetterFilter::default();
        for row in self.get(|store| store.dead_letters(filter.clone(), ALL)).rows {
            let view = self.get(|store| store.dead_letter(row.key.tenant.clone(), row.id)).expect("it is listed");
            assert_eq!(view.dead_letter, row, "list and look-up must agree");
            write_to(text, format_args!("{:?}", self.comparable_dead_letter(view)));
        }
        let mut groups = self.get(|store| store.groups(filter, ALL.limit));
        assert!(groups.windows(2).all(|pair| pair[0].count >= pair[1].count), "most numerous first");
        // The order of equals is not promised.
        groups.sort_by_key(|group| (group.destination.clone(), group.fingerprint.hash));
        write_to(text, format_args!("{groups:?}"));
    }

    fn dump_destinations(&self, text: &mut String) {
        write_to(text, format_args!("{:?}", self.get(|store| store.destinations(None, None, ALL.limit))));
        let mut stats = self.get(|store| store.stats());
        stats.dead_letters.sort();
        write_to(text, format_args!("{stats:?}"));
    }

    fn dump_work(&self, text: &mut String) {
        write_to(text, format_args!("{:?}", self.get(|store| store.due_destinations(Scope::default(), None, 100))));
        write_to(text, format_args!("lost {:?}", self.get(|store| store.lost_claims(None, ALL.limit))));
        for destination in ["a", "b", "c"] {
            let destination = dlo_core::DestinationName::new(destination).unwrap();
            let tenant = dlo_core::TenantId::default_tenant();
            let mut overdue =
                self.get(|store| store.overdue(tenant, destination, Duration::from_secs(5_000), ALL.limit));
            overdue.sort_by_key(|entry| entry.seq);
            let overdue: Vec<_> = overdue.into_iter().map(|entry| entry.key).collect();
            write_to(text, format_args!("overdue {overdue:?}"));
        }
        write_to(text, format_args!("{:?}", self.get(|store| store.workers(ALL.limit))));
    }

    fn dump_acts(&self, text: &mut String) {
        let events = self.get(|store| store.audit_events(None, ALL)).rows;
        write_to(text, format_args!("{} acts, the latest {:?}", events.len(), events.first()));
        let tenant = dlo_core::TenantId::default_tenant();
        for row in self.get(|store| store.redrive_ledger(tenant, ALL)).rows {
            write_to(text, format_args!("{row:?}"));
        }
    }
}

fn write_to(text: &mut String, line: core::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = writeln!(text, "{line}");
}

impl Side {
    /// Without what a store need not keep of a delivered or cancelled entry, nor show of a damaged envelope.
    fn comparable(&self, mut view: EntryView) -> EntryView {
        if matches!(view.summary.state, EntryState::Delivered | EntryState::Cancelled) {
            view.summary.last_failure = None;
            view.last_failure = None;
            view.envelope = view.envelope.map(|envelope| EnvelopeView {
                source: None,
                subject: None,
                occurred: None,
                audit_residue_id: None,
                ..envelope
            });
        }
        if self.damaged {
            view.envelope = None;
            view.summary.event_type = None;
            view.summary.source_event_id = None;
        }
        view
    }

    fn comparable_dead_letter(&self, mut view: DeadLetterView) -> DeadLetterView {
        if self.damaged {
            view.envelope = None;
            view.dead_letter.event_type = None;
            view.dead_letter.source_event_id = None;
            view.dead_letter.correlation_id = None;
            view.dead_letter.audit_residue_id = None;
            view.dead_letter.payload = PayloadSummary::default();
        }
        view
    }
}
