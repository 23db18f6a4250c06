//! What the environment of the process must not change.

use std::process::Command;

use serde_json::json;

use crate::support::{OK, Server, emitter, receipt, send_order};

/// Set in the child process of the test below: where to send.
const TARGET: &str = "DLO_WEBHOOK_TEST_TARGET";

/// The proxy variables are set for a process of its own, which runs this same test.
#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    if let Ok(url) = std::env::var(TARGET) {
        receipt(send_order(&emitter(&url, json!({}))).await);
        return;
    }
    let (server, proxy) = (Server::answering(OK).await, Server::answering(OK).await);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "connections::proxies_of_the_environment_are_ignored"]).env(TARGET, server.url());
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(name, format!("http://{}", proxy.address));
    }
    for name in ["NO_PROXY", "no_proxy", "REQUEST_METHOD"] {
        child.env_remove(name);
    }
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((server.requests().len(), proxy.connections()), (1, 0));
}
