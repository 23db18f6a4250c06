//! Lists: how many rows, from where, and all of them if asked.

use std::future::Future;

use dlo_core::limits::MAX_PAGE;
use dlo_ports::StoreError;
use dlo_ports::store::{Page, PageRequest};

use crate::exit::Exit;
use crate::failure::Result;
use crate::output::{Out, Row, note};

/// Which part of a list.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Paging {
    /// Rows at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Continue after the row with this `seq`
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// All rows, however many
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl Paging {
    /// Reads pages and writes their rows as they come.
    pub(crate) async fn write<T, R, F>(
        self,
        what: &str,
        out: &mut Out,
        mut read: impl FnMut(PageRequest) -> F,
    ) -> Result<Exit>
    where
        R: Row + for<'a> From<&'a T>,
        F: Future<Output = std::result::Result<Page<T>, StoreError>>,
    {
        let wanted = if self.all { usize::MAX } else { self.limit as usize };
        let mut after = self.after;
        let mut list = out.list::<R>();
        let mut more = None;
        while list.len() < wanted {
            let limit = (wanted - list.len()).min(MAX_PAGE);
            let page = read(PageRequest { after, limit }).await?;
            for row in &page.rows {
                list.push(&R::from(row))?;
            }
            more = page.next;
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let none = list.len() == 0;
        list.end()?;
        if none {
            note(format!("no {what}"));
        } else if let Some(next) = more {
            note(format!("there are more {what}: `--after {next}` goes on, `--all` shows all"));
        }
        Ok(Exit::Ok)
    }
}
