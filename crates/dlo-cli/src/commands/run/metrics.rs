//! Metrics of the running engine as OpenMetrics text: a file that is written again and again, and an HTTP endpoint.

use core::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
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
use tokio::task::JoinHandle;

use crate::failure::{Failure, Result};
use crate::output::{note, warn};

/// Path of the endpoint.
const PATH: &str = "/metrics";

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
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let source = source.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, source.clone()));
            // A reader that goes away is no trouble of ours.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<hyper::body::Incoming>,
    source: Source,
) -> core::result::Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::GET || request.uri().path() != PATH {
        return Ok(plain(StatusCode::NOT_FOUND, format!("only GET {PATH}\n")));
    }
    Ok(match source.text().await {
        Ok(text) => {
            let mut response = plain(StatusCode::OK, text);
            let kind = hyper::header::HeaderValue::from_static(CONTENT_TYPE);
            response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
            response
        }
        Err(failure) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", failure.code())),
    })
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}
