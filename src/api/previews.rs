//! Route by which a Digital Human is heard before any call.

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use ringer_base::error::Error;
use ringer_base::error::Result;
use ringer_model::preview::PreviewRequest;
use ringer_service::Preview;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, post, with_tag};
use crate::response::{WAV, Wav, respond};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let about =
        "Hear a Digital Human: at most 10 s of WAV, its level and SNR in the header fields x-level-dbov and x-snr-db";
    let endpoints = vec![post("/v1/preview", preview).repeatable().about(about)];
    with_tag("Digital Humans", "Background noise", endpoints).collect()
}

async fn preview(ctx: Ctx, request: In<Nothing, Nothing, PreviewRequest>) -> Result<Wav> {
    let none = || Error::Unavailable("No calls are made by this process".into());
    let made = ctx.previews.ok_or_else(none)?.make(&ctx.caller, request.body).await?;
    Ok(answer(made).into())
}

/// Returns the sound with what is known of it in header fields; warnings are percent-encoded, since they may hold any
/// letter.
fn answer(made: Preview) -> Response {
    let decibel = |value: Option<f64>| value.map(|value| format!("{value:.1}"));
    let encoded = |text: &String| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let warnings: Vec<String> = made.warnings.iter().map(encoded).collect();
    let fields = [
        ("x-level-dbov", decibel(made.level_dbov)),
        ("x-snr-db", decibel(made.snr_db)),
        ("x-voice", made.voice),
        ("x-cut", Some(made.is_cut.to_string())),
        ("x-warnings", (!warnings.is_empty()).then(|| warnings.join(","))),
    ];
    let mut response = respond(StatusCode::OK, WAV, made.wav);
    for (name, value) in fields {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}
