//! The tools over HTTP, as `/mcp` of the API: streamable HTTP, each request with the key that it carries.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::reading::MOST_WAIT_S;
use super::server::{Access, Assistant};
use crate::api::Assistants;

/// Largest request of an assistant, in bytes: a suite has at most 1 MiB.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Returns what serves assistants at the API.
pub(in crate::cli) fn assistants(allow_trunks: bool) -> Assistants {
    Arc::new(move |routes: Router, stopping| {
        // Host, origin and key are checked before.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(MOST_BYTES)
            .with_cancellation_token(stopping);
        let make = move || Ok(Assistant::new(Access::ByKey(routes.clone()), allow_trunks));
        let mut sessions = LocalSessionManager::default();
        // A tool that waits tells nothing meanwhile, and must not lose its session.
        sessions.session_config.keep_alive = Some(Duration::from_secs(MOST_WAIT_S + 300));
        let service = StreamableHttpService::new(make, Arc::new(sessions), config);
        Arc::new(move |request: Request| {
            let service = service.clone();
            Box::pin(async move { service.handle(request).await.map(Body::new) })
        })
    })
}
