//! A server of S3 on loopback, and faults in front of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use ringer::config::{Secret, Storage};
use s3s::Body;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Credentials that the server takes.
pub(super) const ACCESS_KEY: &str = "AKRINGERTESTS";
pub(super) const SECRET_KEY: &str = "a secret that nobody may read in a log";
/// Bucket that is there.
pub(super) const BUCKET: &str = "calls";

/// Faults that the server has.
#[derive(Default)]
pub(super) struct Faults {
    /// Requests that are answered with 500, from now on.
    pub failing: AtomicUsize,
    /// Requests that write and are answered before the next ones fail; `usize::MAX`: all are.
    pub writes_left: AtomicUsize,
    /// True: the bytes of objects come back changed.
    pub lies: AtomicBool,
    /// True: nothing is answered.
    pub is_silent: AtomicBool,
    /// Parts of uploads that came.
    pub parts: AtomicUsize,
    /// Requests that were refused with 500.
    pub refused: AtomicUsize,
    woken: Notify,
}

impl Faults {
    fn takes(&self, method: &Method) -> bool {
        if self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return false;
        }
        if *method != Method::PUT && *method != Method::POST {
            return true;
        }
        let count = |left: usize| if left == usize::MAX { Some(left) } else { left.checked_sub(1) };
        self.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count).is_ok()
    }

    /// Answers the requests that wait for an answer.
    pub(super) fn speak(&self) {
        self.is_silent.store(false, Ordering::SeqCst);
        self.woken.notify_waiters();
    }
}

/// A running server; it ends with the value.
pub(super) struct Server {
    pub faults: Arc<Faults>,
    folder: TempDir,
    endpoint: String,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a server of a test, ended with it")]
    pub(super) async fn start() -> Server {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        std::fs::create_dir(folder.path().join(BUCKET)).expect("it is new");
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder.path()).expect("a folder"));
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("it is bound"));
        let faults = Arc::new(Faults { writes_left: AtomicUsize::new(usize::MAX), ..Faults::default() });
        let (seen, serving) = (faults.clone(), service.clone());
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (service, faults) = (serving.clone(), seen.clone());
                tokio::spawn(async move {
                    let answer = service_fn(move |request| answer(service.clone(), faults.clone(), request));
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), answer).await;
                });
            }
        });
        Server { faults, folder, endpoint, task }
    }

    /// Returns the settings of a store with this prefix.
    pub(super) fn settings(&self, prefix: &str) -> Storage {
        Storage {
            url: Some(format!("s3://{BUCKET}/{prefix}")),
            endpoint: Some(self.endpoint.clone()),
            region: Some("us-east-1".to_owned()),
            access_key_id: Some(Secret::new(ACCESS_KEY.to_owned())),
            secret_access_key: Some(Secret::new(SECRET_KEY.to_owned())),
            allow_http: true,
            part_mb: 5,
            timeout_s: 20,
            retry_s: 5,
            cache_mb: 0,
            ..Storage::default()
        }
    }

    /// Returns the text of the section with these settings, for a file.
    pub(super) fn section(&self, url: &str, secret: &str, more: &str) -> String {
        format!(
            "[storage]\nurl = \"{url}\"\nendpoint = \"{}\"\nregion = \"us-east-1\"\naccess_key_id = \"{ACCESS_KEY}\"\n\
             secret_access_key = \"{secret}\"\nallow_http = true\ncache_mb = 0\nretry_s = 2\n{more}\n",
            self.endpoint
        )
    }

    /// Returns the file of an object.
    pub(super) fn object(&self, path: &str) -> PathBuf {
        self.folder.path().join(BUCKET).join(path)
    }
}

async fn answer(
    service: S3Service,
    faults: Arc<Faults>,
    request: axum::http::Request<Incoming>,
) -> Result<Response<Body>, std::convert::Infallible> {
    let woken = faults.woken.notified();
    if faults.is_silent.load(Ordering::SeqCst) {
        woken.await;
    }
    let query = request.uri().query().unwrap_or_default();
    if *request.method() == Method::PUT && query.contains("partNumber=") {
        faults.parts.fetch_add(1, Ordering::SeqCst);
    }
    let failed = |status| Response::builder().status(status).body(Body::empty()).expect("it is whole");
    if !faults.takes(request.method()) {
        faults.refused.fetch_add(1, Ordering::SeqCst);
        return Ok(failed(StatusCode::INTERNAL_SERVER_ERROR));
    }
    // The server makes buckets that it is asked to write to.
    let bucket = request.uri().path().trim_start_matches('/').split('/').next().unwrap_or_default();
    if bucket != BUCKET && *request.method() != Method::GET {
        let body = "<Error><Code>NoSuchBucket</Code><Message>The bucket does not exist</Message></Error>";
        let answer = Response::builder().status(StatusCode::NOT_FOUND).body(Body::from(body.to_owned()));
        return Ok(answer.expect("it is whole"));
    }
    let is_read = *request.method() == Method::GET && !query.contains("list-type");
    let response = match Service::call(&service, request).await {
        Ok(response) => response,
        Err(_) => return Ok(failed(StatusCode::INTERNAL_SERVER_ERROR)),
    };
    if !is_read || !faults.lies.load(Ordering::SeqCst) || !response.status().is_success() {
        return Ok(response);
    }
    let (head, body) = response.into_parts();
    let bytes = axum::body::to_bytes(axum::body::Body::new(body), usize::MAX).await.expect("it is here");
    let mut bytes = bytes.to_vec();
    if let Some(first) = bytes.first_mut() {
        *first ^= 1;
    }
    Ok(Response::from_parts(head, Body::from(bytes)))
}
