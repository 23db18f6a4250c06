//! Pages out of an ordered scan.

use dlo_core::limits::MAX_PAGE;
use dlo_ports::{
    StoreError,
    store::{Page, PageRequest},
};

use crate::{error::bounded, rows::Unreadable};

/// Most rows that one page looks at. A filter that takes few of many rows gives a short page and a cursor instead of
/// reading a whole table while nobody can interrupt it.
pub(crate) const BUDGET: usize = 20_000;

/// Why a row is not shown although the filter may take it.
pub(super) enum NotShown {
    /// It can't be read: it is left out, with a warning, so that it does not hide the others.
    Unreadable(Unreadable),
    /// The store failed: so does the page.
    Failed(StoreError),
}

impl From<Unreadable> for NotShown {
    fn from(unreadable: Unreadable) -> Self {
        Self::Unreadable(unreadable)
    }
}

impl From<StoreError> for NotShown {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// A page that is being filled.
pub(super) struct Filling<T> {
    rows: Vec<T>,
    limit: usize,
    looked_at: usize,
    last_seen: Option<u64>,
    last_taken: Option<u64>,
    next: Option<u64>,
}

/// Whether the scan goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// With the next row.
    On,
    /// Not: the page is complete.
    Stop,
}

impl<T> Filling<T> {
    /// An empty page; `Invalid` if its limit is out of bounds.
    pub(super) fn new(request: PageRequest) -> Result<Self, StoreError> {
        bounded("limit of a page", request.limit, 1, MAX_PAGE)?;
        Ok(Self { rows: Vec::new(), limit: request.limit, looked_at: 0, last_seen: None, last_taken: None, next: None })
    }

    /// Looks at the row of a sequence; `take` gives what the page shows of it, `None` if the filter does not take it.
    pub(super) fn look(
        &mut self,
        seq: u64,
        take: impl FnOnce() -> Result<Option<T>, NotShown>,
    ) -> Result<Scan, StoreError> {
        if self.looked_at >= BUDGET {
            self.next = self.last_seen;
            return Ok(Scan::Stop);
        }
        self.looked_at += 1;
        self.last_seen = Some(seq);
        let row = match take() {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(Scan::On),
            Err(NotShown::Failed(error)) => return Err(error),
            Err(NotShown::Unreadable(Unreadable(column))) => {
                tracing::warn!(seq, column, "a stored row can't be read and is left out of a list: run `dlo doctor`");
                return Ok(Scan::On);
            }
        };
        if self.rows.len() == self.limit {
            self.next = self.last_taken;
            return Ok(Scan::Stop);
        }
        self.rows.push(row);
        self.last_taken = Some(seq);
        Ok(Scan::On)
    }

    /// The page.
    pub(super) fn finish(self) -> Page<T> {
        Page { rows: self.rows, next: self.next }
    }
}

/// The first sequence that a page may not show any more, as SQL parameter.
pub(super) fn before(request: PageRequest) -> i64 {
    request.after.map_or(i64::MAX, |after| i64::try_from(after).unwrap_or(i64::MAX))
}

/// Whether a filter that may be absent takes a stored name.
pub(super) fn takes(filter: Option<&str>, stored: &str) -> bool {
    filter.is_none_or(|wanted| wanted == stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(limit: usize, seqs: impl Iterator<Item = u64>, take: fn(u64) -> bool) -> Page<u64> {
        let mut filling = Filling::new(PageRequest { after: None, limit }).expect("within bounds");
        for seq in seqs {
            if filling.look(seq, || Ok(take(seq).then_some(seq))).expect("never fails") == Scan::Stop {
                break;
            }
        }
        filling.finish()
    }

    #[test]
    fn a_page_says_next_exactly_when_more_rows_follow() {
        let exact = fill(2, (1..=2).rev(), |_| true);
        assert_eq!((exact.rows, exact.next), (vec![2, 1], None));
        let more = fill(2, (1..=3).rev(), |_| true);
        assert_eq!((more.rows, more.next), (vec![3, 2], Some(2)));
        let filtered = fill(2, (1..=6).rev(), |seq| seq % 2 == 0);
        assert_eq!((filtered.rows, filtered.next), (vec![6, 4], Some(4)));
    }

    #[test]
    fn a_row_that_can_not_be_read_does_not_hide_the_others() {
        let mut filling = Filling::new(PageRequest { after: None, limit: 2 }).expect("within bounds");
        for seq in [3, 2, 1] {
            let take = || if seq == 2 { Err(Unreadable("due").into()) } else { Ok(Some(seq)) };
            assert_eq!(filling.look(seq, take).expect("left out"), Scan::On);
        }
        assert_eq!(filling.finish(), Page { rows: vec![3, 1], next: None });
        let mut filling = Filling::<u64>::new(PageRequest { after: None, limit: 2 }).expect("within bounds");
        let failed = filling.look(1, || Err(crate::error::corrupt("damage").into()));
        assert_eq!(failed.expect_err("fails").code(), "store.corrupt");
    }

    #[test]
    fn a_page_gives_up_after_its_budget_and_says_where() {
        let rows = BUDGET as u64 + 5;
        let page = fill(2, (1..=rows).rev(), |seq| seq == 1);
        assert_eq!((page.rows, page.next), (vec![], Some(6)));
    }
}
