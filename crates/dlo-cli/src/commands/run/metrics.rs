//! Metrics of the running engine as OpenMetrics text: a file that is written again and again, and an HTTP endpoint.

use core::convert::Infallible;
use core::time::Duration;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use std::{fs, io};

use bytes::Bytes;
use dlo::Outbox;
use dlo::config::MetricsConfig;
use dlo_engine::{CONTENT_TYPE, Handle, render_openmetrics};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::failure::{Failure, Result};
use crate::output::{note, warn};

/// Path of the endpoint.
const PATH: &str = "/metrics";

/// How old the figures of the endpoint may be. Counting them reads the whole of some indexes, so that readers that come
/// together, or without a pause, share one count.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Rest after a connection that could not be accepted: what is short (open files, for example) does not come back by asking
/// at once.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// The latest figures, and when they were asked for.
#[derive(Clone, Default)]
struct Latest(Arc<Mutex<Option<(Instant, Bytes)>>>);

impl Latest {
    /// Figures that are at most [`MAX_AGE`] old at `now`. One at a time makes them, and the others wait for that.
    async fn text(&self, now: Instant, make: impl Future<Output = Result<String>>) -> Result<Bytes> {
        let mut latest = self.0.lock().await;
        if let Some((at, text)) = &*latest
            && now.saturating_duration_since(*at) < MAX_AGE
        {
            return Ok(text.clone());
        }
        let text = Bytes::from(make.await?);
        *latest = Some((now, text.clone()));
        Ok(text)
    }
}

/// What is written and served.
#[derive(Clone)]
struct Source {
    outbox: Outbox,
    engine: Handle,
}

impl Source {
    async fn text(&self) -> Result<String> {
        let stats = self.outbox.reader().stats().await?;
        Ok(render_openmetrics(&stats, self.engine.metrics()))
    }
}

/// What has been started.
pub(crate) struct Running {
    source: Source,
    file: Option<PathBuf>,
    tasks: Vec<JoinHandle<()>>,
}

/// Starts what the configuration asks for.
pub(crate) async fn start(config: &MetricsConfig, outbox: &Outbox, engine: Handle) -> Result<Running> {
    let source = Source { outbox: outbox.clone(), engine };
    let mut tasks = Vec::new();
    if let Some(address) = config.listen {
        let listener =
            TcpListener::bind(address).await.map_err(|error| Failure::io(format!("listening on {address}"), &error))?;
        let bound = listener.local_addr().map_err(|error| Failure::io(format!("listening on {address}"), &error))?;
        tell_address(bound);
        tasks.push(tokio::spawn(serve(listener, source.clone())));
    }
    if let Some(file) = config.file.clone() {
        // A folder that is not there is found out now and not after the first interval.
        write(&file, &source.text().await?).map_err(|error| Failure::io(file.display(), &error))?;
        let (source, interval) = (source.clone(), config.interval);
        tasks.push(tokio::spawn(async move {
            loop {
                source.outbox.env().sleep(interval).await;
                write_or_warn(&file, &source).await;
            }
        }));
    }
    Ok(Running { source, file: config.file.clone(), tasks })
}

impl Running {
    /// Ends it; the file gets the last figures.
    pub(crate) async fn finish(self) {
        for task in &self.tasks {
            task.abort();
        }
        if let Some(file) = &self.file {
            write_or_warn(file, &self.source).await;
        }
    }
}

fn tell_address(bound: SocketAddr) {
    note(format!("metrics on http://{bound}{PATH}"));
    if !bound.ip().is_loopback() {
        warn(
            "metrics are served without TLS on an address that others can reach: names of tenants and destinations are in them",
        );
    }
}

async fn write_or_warn(file: &Path, source: &Source) {
    let written = match source.text().await {
        Ok(text) => write(file, &text).map_err(|error| error.to_string()),
        Err(failure) => Err(failure.message().to_owned()),
    };
    if let Err(problem) = written {
        tracing::warn!(file = %file.display(), problem, "metrics were not written");
    }
}

/// Whoever reads the file sees the old text or the new one, never half of it.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = file.with_file_name(name);
    fs::write(&beside, text)?;
    fs::rename(&beside, file)
}

async fn serve(listener: TcpListener, source: Source) {
    let latest = Latest::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            source.outbox.env().sleep(ACCEPT_REST).await;
            continue;
        };
        let (source, latest) = (source.clone(), latest.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, source.clone(), latest.clone()));
            // A reader that goes away is no trouble of ours.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<hyper::body::Incoming>,
    source: Source,
    latest: Latest,
) -> core::result::Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::GET || request.uri().path() != PATH {
        return Ok(plain(StatusCode::NOT_FOUND, format!("only GET {PATH}\n").into()));
    }
    Ok(match latest.text(Instant::now(), source.text()).await {
        Ok(text) => {
            let mut response = plain(StatusCode::OK, text);
            let kind = hyper::header::HeaderValue::from_static(CONTENT_TYPE);
            response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
            response
        }
        Err(failure) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", failure.code()).into()),
    })
}

fn plain(status: StatusCode, text: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use core::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn readers_share_one_count_for_a_second() {
        let (latest, counts, start) = (Latest::default(), Cell::new(0), Instant::now());
        let ask = async |now| {
            let count = async {
                tokio::task::yield_now().await;
                counts.set(counts.get() + 1);
                Ok(counts.get().to_string())
            };
            latest.text(now, count).await.unwrap()
        };
        let (one, other) = tokio::join!(ask(start), ask(start));
        assert_eq!((&*one, &*other, counts.get()), (b"1".as_slice(), b"1".as_slice(), 1), "both came together");
        assert_eq!(ask(start + MAX_AGE / 2).await, "1");
        assert_eq!(ask(start + MAX_AGE).await, "2");
    }

    #[tokio::test]
    async fn a_count_that_failed_is_not_kept() {
        let (latest, now) = (Latest::default(), Instant::now());
        let failure = Failure::io("counting", &io::Error::other("broken on purpose"));
        latest.text(now, async { Err(failure) }).await.unwrap_err();
        assert_eq!(latest.text(now, async { Ok("1".to_owned()) }).await.unwrap(), "1");
    }
}
