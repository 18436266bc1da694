//! `[telemetry]`: traces of conversations in the form of OpenTelemetry, and the trace context that agents are told.

use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::source::Source;
use super::{Secret, is_http_address};

/// Path of traces below the address of a collector (OTLP 1.x, "OTLP/HTTP Request").
const TRACES: &str = "/v1/traces";

/// Settings of the section `[telemetry]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Telemetry {
    /// Address of a collector, `http://HOST:PORT`; `None`: no traces are sent.
    pub otlp_endpoint: Option<String>,
    /// Header fields of each request to it, as `NAME=VALUE,NAME=VALUE` with percent-encoded values.
    pub otlp_headers: Option<Secret>,
    /// True if spans hold the words of conversations.
    pub content: bool,
    /// True if agents are told the trace context of their call. By default true where `otlp_endpoint` is set.
    pub propagate: bool,
}

impl Telemetry {
    /// True if conversations have traces: they are sent to a collector, or agents are told of them.
    pub fn is_on(&self) -> bool {
        self.otlp_endpoint.is_some() || self.propagate
    }

    /// Returns the address that traces are posted to; `None`: none are sent.
    pub fn traces_url(&self) -> Option<String> {
        let base = self.otlp_endpoint.as_ref()?.trim_end_matches('/');
        Some(if base.ends_with(TRACES) { base.to_owned() } else { format!("{base}{TRACES}") })
    }

    /// Returns names and values of the header fields of each request.
    pub fn headers(&self) -> Vec<(String, String)> {
        self.otlp_headers.as_ref().and_then(|text| read_headers(text.expose())).unwrap_or_default()
    }

    pub(super) fn read(&mut self, from: &mut Source) {
        from.maybe_text("telemetry.otlp_endpoint", &mut self.otlp_endpoint);
        if let Some(problem) = self.otlp_endpoint.as_deref().and_then(problem_of) {
            from.refuse(format!("telemetry.otlp_endpoint {problem}"));
        }
        from.secret("telemetry.otlp_headers", &mut self.otlp_headers);
        if self.otlp_headers.as_ref().is_some_and(|text| read_headers(text.expose()).is_none()) {
            // It may hold a key: it is not shown.
            from.refuse(
                "telemetry.otlp_headers must be like NAME=VALUE,NAME=VALUE, with percent-encoded values".into(),
            );
        }
        if self.otlp_headers.is_some()
            && self.otlp_endpoint.is_none()
            && !from.has_problem_of("telemetry.otlp_endpoint")
        {
            from.refuse("telemetry.otlp_endpoint is missing: telemetry.otlp_headers is set".to_owned());
        }
        from.boolean("telemetry.content", &mut self.content);
        self.propagate = self.otlp_endpoint.is_some();
        from.boolean("telemetry.propagate", &mut self.propagate);
    }
}

/// Returns what is wrong with the address of a collector; `None`: nothing that its text shows.
fn problem_of(url: &str) -> Option<&'static str> {
    let Ok(parsed) = url::Url::parse(url) else { return Some("must be like http://collector:4318") };
    match () {
        () if !is_http_address(url) => Some("must be like http://collector:4318"),
        () if parsed.password().is_some() || !parsed.username().is_empty() => {
            Some("must hold no credentials: telemetry.otlp_headers is for them")
        }
        () if parsed.query().is_some() || parsed.fragment().is_some() => Some("must have no query and no fragment"),
        () => None,
    }
}

/// Returns names and values of header fields; `None`: the text has another form.
fn read_headers(text: &str) -> Option<Vec<(String, String)>> {
    let fields = text.split(',').map(str::trim).filter(|field| !field.is_empty());
    let read = |field: &str| {
        let (name, value) = field.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let name = name.trim();
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
        (is_name && value.bytes().all(|byte| (b' '..=b'~').contains(&byte)))
            .then(|| (name.to_owned(), value.into_owned()))
    };
    fields.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_collectors() {
        for (url, expect) in [
            ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318/v1/traces")),
            ("https://collector.example.com/otlp/", Some("https://collector.example.com/otlp/v1/traces")),
            ("http://collector:4318/v1/traces", Some("http://collector:4318/v1/traces")),
        ] {
            let settings = Telemetry { otlp_endpoint: Some(url.to_owned()), ..Telemetry::default() };
            assert_eq!((problem_of(url), settings.traces_url().as_deref()), (None, expect), "{url}");
        }
        for url in ["collector:4318", "grpc://collector", "http://u:p@collector", "http://collector?x=1", ""] {
            assert!(problem_of(url).is_some(), "{url}");
        }
    }

    #[test]
    fn header_fields() {
        let fields = |text: &str| read_headers(text);
        let expect = [("x-key".to_owned(), "a b".to_owned()), ("Authorization".to_owned(), "Basic x==".to_owned())];
        assert_eq!(fields("x-key=a%20b, Authorization=Basic x=="), Some(expect.to_vec()));
        assert_eq!(fields(""), Some(vec![]));
        for text in ["x-key", "=a", "a b=c", "a=%0a", "a:b=c"] {
            assert_eq!(fields(text), None, "{text}");
        }
    }
}
