//! The cost of a claim beside everything that piles up (I-16), against the cost beside nothing.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use dlo_core::{Incarnation, Token, policy::DrainMode};
use dlo_ports::store::{ClaimKind, ClaimRequest, DrainStore, ReadStore, WorkerStart};
use dlo_sqlite::SqliteStore;

use crate::{
    bed::{self, Options},
    flat_fill::{self, Pile},
    report::{Figure, Series, Target, median},
};

const SCENARIO: &str = "flat";
/// Entries of one claim.
const PAGE: usize = 100;
/// Claims of one round on each side.
const CLAIMS: usize = 200;

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    let folder = bed::folder();
    let [empty, full] = ["empty.db", "full.db"].map(|name| folder.path().join(name));
    // The same number is ready on both sides, also after every claim.
    let ready = options.runs * CLAIMS * PAGE + PAGE;
    let pile = Pile {
        ready,
        delivered: options.rows(2_000_000),
        dead: options.rows(200_000),
        waiting: options.rows(500_000),
        held: options.rows(500_000),
    };
    let started = Instant::now();
    flat_fill::fill(&empty, &Pile { ready, ..Pile::default() });
    flat_fill::fill(&full, &pile);
    eprintln!("  filled in {:.0} s", started.elapsed().as_secs_f64());
    bed::run(async {
        let sides = [Side::start(&empty).await, Side::start(&full).await];
        let mut ratio = Series::default();
        let mut spans = [Series::default(), Series::default()];
        for round in 0..options.runs {
            let mut times = [Vec::with_capacity(CLAIMS), Vec::with_capacity(CLAIMS)];
            for claim in 0..CLAIMS {
                for side in [claim % 2, 1 - claim % 2] {
                    times[side].push(sides[side].claim().await.as_secs_f64() * 1e6);
                }
            }
            let [few, many] = times.map(median);
            eprintln!(
                "  round {round}: beside nothing {few:.0} us, beside the pile {many:.0} us, ratio {:.3}",
                many / few
            );
            ratio.push(many / few);
            spans[0].push(few);
            spans[1].push(many);
        }
        vec![Figure {
            name: "sqlite.claim_flat_ratio",
            value: ratio.median(),
            unit: "ratio",
            target: Target::AtMost(1.2),
            scenario: SCENARIO,
            note: format!(
                "median time of {CLAIMS} claims of {PAGE} beside {} delivered, {} dead, {} waiting and a held destination \
                 with {} ready ({:.0} us), against a file without them ({:.0} us); {}{}",
                pile.delivered,
                pile.dead,
                pile.waiting,
                pile.held,
                spans[1].median(),
                spans[0].median(),
                ratio.spread(),
                options.size()
            ),
        }]
    })
}

/// One file with a worker.
struct Side {
    store: Arc<SqliteStore>,
    incarnation: Incarnation,
}

impl Side {
    async fn start(path: &std::path::Path) -> Self {
        let store = bed::open(path);
        let violations = store.check(10).await.expect("the check runs");
        assert!(violations.is_empty(), "the fill breaks invariants: {violations:?}");
        let incarnation = Incarnation::new(bed::now(), random());
        let start = WorkerStart {
            worker: "bench".parse().expect("a valid name"),
            incarnation,
            mode: DrainMode::Claim,
            lease: Duration::from_hours(1),
            pid: std::process::id(),
        };
        store.start_worker(start).await.expect("a worker starts");
        Self { store, incarnation }
    }

    async fn claim(&self) -> Duration {
        let request = ClaimRequest {
            tenant: bed::tenant(),
            destination: bed::name(0),
            incarnation: self.incarnation,
            token: Token::new(bed::now(), random()),
            hold_for: Duration::from_hours(1),
            limit: PAGE,
            kind: ClaimKind::Normal,
        };
        let started = Instant::now();
        let page = self.store.claim(request).await.expect("a claim works");
        let span = started.elapsed();
        assert_eq!(page.claimed.len(), PAGE);
        span
    }
}

fn random() -> [u8; 10] {
    let mut bytes = [0; 10];
    (dlo_sqlite::system_random())(&mut bytes);
    bytes
}
