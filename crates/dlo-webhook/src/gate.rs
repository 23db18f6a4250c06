//! The proof of whether a request can have left: a body that says when it is first asked for.
//!
//! The client speaks HTTP/1.1 only. It buffers the request head, then asks the body for its first bytes, and only
//! then writes to the connection; a head is bounded so that it always fits that buffer. So a request whose body was
//! never asked for has not left. When time is up, the waiting side closes the gate: one atomic step decides who was
//! first, and a body that finds the gate closed fails, so that nothing is written after "not sent" was answered.

use core::pin::Pin;
use core::sync::atomic::{AtomicU8, Ordering};
use core::task::{Context, Poll};
use std::sync::Arc;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

const IDLE: u8 = 0;
const PASSED: u8 = 1;
const CLOSED: u8 = 2;

/// One request's gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<AtomicU8>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU8::new(IDLE)))
    }

    /// Passes; false if it has been closed.
    fn pass(&self) -> bool {
        match self.0.compare_exchange(IDLE, PASSED, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(state) => state == PASSED,
        }
    }

    /// Closes; false if the request has passed it, so that bytes may have left.
    pub(crate) fn close(&self) -> bool {
        match self.0.compare_exchange(IDLE, CLOSED, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(state) => state == CLOSED,
        }
    }

    /// The body of one request behind this gate.
    pub(crate) fn body(&self, bytes: Bytes) -> GatedBody {
        if bytes.is_empty() {
            // An empty body is never asked for: from here on the request may leave at any time.
            self.pass();
        }
        GatedBody { gate: self.clone(), bytes: Some(bytes).filter(|bytes| !bytes.is_empty()) }
    }
}

/// The gate was closed before the request could leave.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("given up before the request was sent")]
pub(crate) struct GateClosed;

/// A body of known length in one frame.
#[derive(Debug)]
pub(crate) struct GatedBody {
    gate: Gate,
    bytes: Option<Bytes>,
}

impl Body for GatedBody {
    type Data = Bytes;
    type Error = GateClosed;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, GateClosed>>> {
        if !self.gate.pass() {
            return Poll::Ready(Some(Err(GateClosed)));
        }
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_frame(body: &mut GatedBody) -> Option<Result<Bytes, GateClosed>> {
        let mut context = Context::from_waker(core::task::Waker::noop());
        match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(frame) => frame.map(|frame| frame.map(|frame| frame.into_data().expect("a data frame"))),
            Poll::Pending => panic!("a gated body never waits"),
        }
    }

    #[test]
    fn a_closed_gate_lets_nothing_out() {
        let gate = Gate::new();
        let mut body = gate.body(Bytes::from_static(b"x"));
        assert!(gate.close());
        assert!(first_frame(&mut body).expect("an error frame").is_err());
        assert!(gate.close(), "closing twice says the same");
    }

    #[test]
    fn a_passed_gate_can_not_be_closed() {
        let gate = Gate::new();
        let mut body = gate.body(Bytes::from_static(b"x"));
        assert_eq!(first_frame(&mut body).expect("a frame").expect("open"), Bytes::from_static(b"x"));
        assert!(!gate.close());
    }

    #[test]
    fn an_empty_body_counts_as_passed() {
        let gate = Gate::new();
        let body = gate.body(Bytes::new());
        assert!(body.is_end_stream());
        assert!(!gate.close());
    }

    /// What the whole proof rests on: the client writes nothing before it asks the body, even a head of full size.
    #[tokio::test]
    async fn nothing_is_written_once_the_gate_is_closed() {
        use tokio::io::AsyncReadExt;

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let settings = format!(r#"{{"url": "{url}", "allow_private": true}}"#);
        let settings = crate::Settings::parse(&settings).expect("valid");
        let client = crate::client::build(&settings, Arc::new(crate::SystemResolver), false).expect("a client");
        let gate = Gate::new();
        assert!(gate.close());
        let request = client
            .post(&url)
            .header("x-large", "v".repeat(crate::MAX_HEADER_BYTES))
            .body(reqwest::Body::wrap(gate.body(Bytes::from_static(b"payload"))));
        let mut received = Vec::new();
        let peer = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            stream.read_to_end(&mut received).await
        };
        let (answer, read) = tokio::join!(request.send(), peer);
        assert!(answer.is_err());
        assert_eq!((read.expect("a clean end"), received.len()), (0, 0));
    }
}
