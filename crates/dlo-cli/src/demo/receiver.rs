//! The demo's receiver: a real HTTP server on loopback that misbehaves by script and keeps a record of what it got.

use core::convert::Infallible;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use dlo::webhook::{Secret, SignedHeaders, verify};
use dlo_ports::Env;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::script::{Behaviour, Fault, scripted};

/// Largest request body that it reads, in bytes: the demo's events are a few hundred.
const MAX_BODY_BYTES: usize = 64 * 1_024;
/// How far the time of a signature may be from now.
const TOLERANCE: Duration = Duration::from_mins(5);

/// One request as the receiver saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Path without its slash: the destination.
    pub(crate) path: String,
    /// CloudEvents id.
    pub(crate) event: String,
    /// `Idempotency-Key` header.
    pub(crate) operation_key: String,
    /// Whether a signature came with it that fits.
    pub(crate) signed: bool,
    /// What it did.
    pub(crate) did: Behaviour,
}

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    tries: BTreeMap<(String, String), usize>,
    mended: BTreeSet<Fault>,
}

/// What every request needs.
struct House {
    env: Arc<dyn Env>,
    secret: Secret,
    state: Mutex<State>,
}

impl House {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running receiver. It stops listening when it is dropped.
pub(crate) struct Receiver {
    address: SocketAddr,
    house: Arc<House>,
    _alive: watch::Sender<()>,
}

impl Receiver {
    /// Starts one on a free port of 127.0.0.1.
    pub(crate) async fn start(env: Arc<dyn Env>, secret: Secret) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let house = Arc::new(House { env, secret, state: Mutex::default() });
        let (alive, ended) = watch::channel(());
        tokio::spawn(accept(listener, Arc::clone(&house), ended));
        Ok(Self { address, house, _alive: alive })
    }

    /// Base address, without a slash at its end.
    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Mends something; `false` if it was mended before.
    pub(crate) fn mend(&self, fault: Fault) -> bool {
        self.house.state().mended.insert(fault)
    }

    /// Everything that it got, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.house.state().seen.clone()
    }
}

async fn accept(listener: TcpListener, house: Arc<House>, mut ended: watch::Receiver<()>) {
    loop {
        tokio::select! {
            biased;
            _ = ended.changed() => return,
            connection = listener.accept() => {
                let Ok((stream, _)) = connection else { continue };
                tokio::spawn(serve(stream, Arc::clone(&house)));
            }
        }
    }
}

async fn serve(stream: TcpStream, house: Arc<House>) {
    let service = service_fn(move |request| answer(request, Arc::clone(&house)));
    // A connection that ends badly is what the demo is about.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The connection is to be cut without an answer.
#[derive(Debug, thiserror::Error)]
#[error("connection cut on purpose")]
struct Cut;

async fn answer(request: Request<Incoming>, house: Arc<House>) -> Result<Response<Full<Bytes>>, Cut> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY_BYTES).collect().await.map_err(|_| Cut)?.to_bytes();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());

    let path = head.uri.path().trim_start_matches('/').to_owned();
    let event = header("ce-id").map_or_else(|| structured_id(&body), str::to_owned);
    let operation_key = header("idempotency-key").unwrap_or_default().to_owned();
    let signed = SignedHeaders::find(header).is_ok_and(|headers| {
        verify(core::slice::from_ref(&house.secret), &headers, &body, house.env.now(), TOLERANCE).is_ok()
    });

    let did = {
        let mut state = house.state();
        let did = choose(&mut state, &path, &event);
        state.seen.push(Seen { path, event, operation_key, signed, did });
        did
    };
    perform(did, &*house.env).await
}

fn choose(state: &mut State, path: &str, event: &str) -> Behaviour {
    let broken = Fault::ALL.into_iter().filter(|fault| !state.mended.contains(fault)).find_map(|fault| {
        let (at, of, status) = fault.shows_as();
        (at == path && of.is_none_or(|of| of == event)).then_some(Behaviour::Answer(status))
    });
    if let Some(behaviour) = broken {
        return behaviour;
    }
    let tries = state.tries.entry((path.to_owned(), event.to_owned())).or_default();
    let number = *tries;
    *tries += 1;
    scripted(path, event, number).unwrap_or(Behaviour::Accept)
}

async fn perform(behaviour: Behaviour, env: &dyn Env) -> Result<Response<Full<Bytes>>, Cut> {
    let status = match behaviour {
        Behaviour::Accept => 204,
        Behaviour::AcceptSlowly(span) => {
            env.sleep(span).await;
            204
        }
        Behaviour::TooMany(_) => 429,
        Behaviour::Answer(status) => status,
        Behaviour::Hang => return Ok(never().await),
        Behaviour::Cut => return Err(Cut),
    };
    let mut response = Response::builder().status(status);
    if let Behaviour::TooMany(seconds) = behaviour {
        response = response.header("retry-after", seconds);
    }
    Ok(response.body(Full::default()).expect("fixed statuses and headers make a valid answer"))
}

async fn never() -> Response<Full<Bytes>> {
    let never: core::future::Pending<Infallible> = core::future::pending();
    match never.await {}
}

fn structured_id(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Id {
        id: String,
    }
    serde_json::from_slice(body).map(|Id { id }| id).unwrap_or_default()
}
