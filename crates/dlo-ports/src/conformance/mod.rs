//! The suite that every store must pass, and the model oracle ([`oracle`]).
//!
//! A store instantiates the suite with one line in its integration tests; each case is a test of its own:
//!
//! ```ignore
//! dlo_ports::conformance_suite!(crate::harness::open);
//! ```
//!
//! where the expression is a `fn(Arc<ManualClock>) -> Box<dyn Harness>`: a fresh, empty store that takes its time from
//! that clock. Every case ends with the store's own check, which must find nothing.
#![allow(clippy::unwrap_used, reason = "a suite of tests: a failure is a panic that says where")]

mod bench;
mod claim;
mod clock;
mod durable;
mod enqueue;
mod fences;
mod health;
mod office;
pub mod oracle;
mod read;
mod redrive;
mod retention;
mod selection;
mod settle;
mod workers;

use std::sync::Arc;

use dlo_core::{EntryKey, NewEntry};

use crate::{Store, store::EnqueueAnswer};

use bench::Bench;
pub use clock::{ManualClock, block_on};

/// A store under test, and what it can do besides its verbs.
pub trait Harness {
    /// The open store.
    fn store(&self) -> Arc<dyn Store>;

    /// Closes the store and opens the same data again. False if nothing of it is durable.
    fn reopen(&mut self) -> bool {
        false
    }

    /// Enqueues within a transaction of the caller's own, then commits or rolls back. `None` if the store has no
    /// such thing.
    fn enqueue_in_caller_transaction(&mut self, items: Vec<NewEntry>, commit: bool) -> Option<Vec<EnqueueAnswer>> {
        let _ = (items, commit);
        None
    }

    /// Damages the stored envelope of an entry, so that it can't be read. False if that can't be done.
    fn make_unreadable(&mut self, key: &EntryKey) -> bool {
        let _ = key;
        false
    }

    /// Whether the store admits one engine, so that a worker's start ends all earlier incarnations.
    fn single_engine(&self) -> bool {
        false
    }
}

/// Runs one case on a fresh store; used by [`conformance_suite!`](crate::conformance_suite).
pub fn run(open: impl FnOnce(Arc<ManualClock>) -> Box<dyn Harness>, group: &str, case: &str) {
    let clock = ManualClock::new();
    let mut bench = Bench::new(open(clock.clone()), clock);
    find(group, case)(&mut bench);
    let violations = bench.violations();
    assert!(violations.is_empty(), "the store's own check found {violations:?}");
}

/// Lists every case once: the table that [`run`] looks in, and the macro that makes tests of it.
macro_rules! suite {
    ($dollar:tt $($group:ident { $($case:ident,)* })*) => {
        fn find(group: &str, case: &str) -> fn(&mut Bench) {
            match (group, case) {
                $($((stringify!($group), stringify!($case)) => $group::$case,)*)*
                _ => panic!("the suite has no case {group}::{case}"),
            }
        }

        /// Instantiates the conformance suite: one `#[test]` per case. See [`dlo_ports::conformance`](crate::conformance).
        #[macro_export]
        macro_rules! conformance_suite {
            ($dollar open:expr) => {
                $(
                    mod $group {
                        $(
                            #[test]
                            fn $case() {
                                $dollar crate::conformance::run($dollar open, stringify!($group), stringify!($case));
                            }
                        )*
                    }
                )*
            };
        }
    };
}

suite! { $
    enqueue {
        created_entries_stand_in_order,
        a_repeated_key_is_existing,
        other_content_under_a_key_is_a_conflict,
        keys_belong_to_tenant_and_producer,
        a_batch_sees_its_own_keys,
        routing_by_event_type_is_in_name_order,
        a_refused_item_saves_nothing,
        refusals_name_the_rule,
        checks_have_an_order,
        deliver_by_must_leave_time,
        not_before_waits,
        the_backlog_counts_live_entries_of_the_batch_too,
        operation_keys_are_given_or_made,
        a_destination_named_twice_gets_one_entry,
        tenants_are_apart,
        change_hooks_are_called,
        batches_are_bounded,
    }
    claim {
        a_claim_marks_the_row,
        a_claimed_entry_is_not_claimed_again,
        workers_that_are_not_alive_are_fenced,
        claims_are_bounded,
        an_unreadable_row_is_quarantined_by_itself,
        pace_delays_and_is_durable,
        pace_is_the_limit_of_the_selection,
        more_is_about_the_limit,
        large_bodies_make_small_pages,
        large_bodies_take_no_pace_for_what_is_left,
        a_suspect_is_claimed_alone,
        due_destinations_are_found,
        due_destinations_are_paged_and_scoped,
    }
    selection {
        lanes_are_read_by_due_and_sequence,
        half_of_a_page_is_for_retries,
        one_alone_goes_to_the_earlier_head,
        a_due_retry_is_tried_within_two_pages,
        due_means_reached,
    }
    fences {
        five_answers,
        a_repeated_settle_is_applied,
        a_repeat_is_known_after_another_claim,
        settle_and_release_are_different_verbs,
        a_stale_save_changes_nothing,
        plain_mode_fences_by_version,
        an_expired_claim_may_settle,
        what_an_operator_ended_is_terminal,
        another_destinations_entry_is_missing,
        an_older_generation_is_terminal,
        a_send_mark_is_durable_and_repeatable,
        a_send_mark_makes_stale_maintenance_lose,
        a_marked_claim_is_not_given_back,
        a_release_leaves_the_entry_as_before,
        one_broken_fence_stops_nothing_else,
    }
    settle {
        delivery_goes_to_history,
        a_transient_failure_waits,
        a_deferral_charges_nothing,
        a_dead_letter_knows_its_envelope,
        a_dead_letter_has_no_next_try,
        a_used_up_allowance_keeps_the_original_error,
        any_error_text_is_saved,
        attempts_are_kept_first_and_newest,
        delivery_keeps_the_failure_history,
        manual_review_is_set_aside,
        settling_is_bounded,
    }
    workers {
        a_lapsed_lease_loses_claims_and_a_heartbeat_gets_them_back,
        a_stopped_worker_loses_claims_at_once,
        a_reached_deadline_loses_the_claim,
        a_living_worker_is_left_its_own_claims,
        a_lease_in_plain_mode_has_no_end,
        what_maintenance_saved_is_not_a_plain_workers_own,
        lost_claims_come_by_sequence,
        a_crash_makes_suspects_uncharged,
        crashes_alone_end_in_worker_lost,
        a_marked_lost_claim_is_never_repeated_on_harmful,
        a_late_worker_is_told_stale_claim,
        a_quicker_worker_makes_maintenance_lose,
        an_ended_incarnation_stays_ended,
        a_new_engine_ends_earlier_ones,
        plain_mode_refuses_beside_a_live_claim,
    }
    health {
        a_hold_is_a_predicate_of_the_claim,
        hold_acts_answer_what_they_did,
        a_release_forgets_the_evidence,
        the_breaker_opens_and_a_probe_closes_it,
        a_probe_takes_the_entry_that_failed_least,
        a_probe_looks_among_the_first_in_due_order,
        a_probe_is_taken_once,
        a_requested_probe_goes_through_a_persons_hold,
        a_health_change_is_compare_and_set,
    }
    office {
        destinations_have_versions,
        applying_keeps_health,
        an_entry_is_cancelled_unless_claimed_or_ended,
        retry_now_brings_forward,
        retry_now_out_of_manual_review_starts_a_generation,
        dead_lettering_by_hand_is_for_manual_review,
        every_act_has_its_audit_event,
        acts_are_bounded,
    }
    redrive {
        a_redrive_starts_a_generation,
        a_dead_letter_is_redriven_once,
        an_unanswered_send_is_not_redriven_where_it_could_harm,
        other_refusals_name_their_rule,
        every_item_has_a_ledger_row,
        redriving_again_keeps_identity_and_counts_anew,
        a_redrive_is_bounded_and_of_one_tenant,
    }
    read {
        entries_are_listed_newest_first,
        filters_and_states_agree,
        an_entry_is_found_in_every_state,
        dead_letters_are_listed_and_grouped,
        totals_are_exact,
        depth_and_age_follow_the_clock,
        workers_are_listed,
        lists_are_bounded,
        no_payload_byte_is_shown,
    }
    retention {
        old_history_goes_and_newer_stays,
        enqueue_keys_go_by_their_own_window,
        lineages_with_a_dead_letter_are_kept,
        pruning_is_bounded,
        overdue_entries_are_found,
        an_overdue_entry_ends_under_its_version,
        not_before_delays_the_age,
    }
    durable {
        everything_survives_a_reopen,
        a_callers_commit_saves,
        a_callers_rollback_saves_nothing,
    }
}
