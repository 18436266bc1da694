//! Offers to platforms whose request and answer have forms of their own: this side's description goes where the
//! settings put it, and theirs is read from where it stands.

use std::fmt;

use serde_json::Value;

use super::Reason;

/// Place of this side's session description in the body of an offer.
pub const SDP_PLACE: &str = "{{offer.sdp}}";

/// Start of every session description (RFC 8866 5.1).
const SDP_START: &str = "v=0";

/// An offer as an adapter's settings describe it, filled for one call.
#[derive(Clone, PartialEq, Eq)]
pub struct PlatformOffer {
    /// Name of the platform, such as `P4`.
    pub platform: String,
    /// Address that the offer is posted to.
    pub url: String,
    /// The same address without secrets, as logs and timelines tell it.
    pub shown: String,
    /// Headers of the request, in order.
    pub headers: Vec<(String, String)>,
    /// JSON in whose texts [`SDP_PLACE`] stands; `None`: the description is the whole body.
    pub body: Option<String>,
    /// JSON pointer of the answer's description (RFC 6901); empty: the whole answer is the description.
    pub answer_pointer: String,
}

impl fmt::Debug for PlatformOffer {
    /// Writes no header, no query and no body: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlatformOffer({}, {})", self.platform, self.shown)
    }
}

impl PlatformOffer {
    /// Returns the body of the request with a description, and its media type.
    pub(super) fn body(&self, sdp: &str) -> (String, &'static str) {
        match &self.body {
            None => (sdp.to_owned(), "application/sdp"),
            Some(template) => {
                let quoted = Value::from(sdp).to_string();
                // Within the quotation marks of the text that holds the place.
                (template.replace(SDP_PLACE, &quoted[1..quoted.len() - 1]), "application/json")
            }
        }
    }

    /// Reads the description in an answer.
    ///
    /// # Errors
    /// The fault of the answer, without its text.
    pub(super) fn read(&self, answer: &[u8]) -> Result<String, Reason> {
        let unusable = |why: String| Reason::Unusable(why);
        let sdp = if self.answer_pointer.is_empty() {
            std::str::from_utf8(answer).map_err(|_| unusable("is no text".to_owned()))?.to_owned()
        } else {
            let answer: Value = serde_json::from_slice(answer).map_err(|_| unusable("is no JSON".to_owned()))?;
            let found = answer.pointer(&self.answer_pointer).and_then(Value::as_str);
            let lacks = || unusable(format!("has no text at {} (answer_pointer)", self.answer_pointer));
            found.ok_or_else(lacks)?.to_owned()
        };
        if sdp.starts_with(SDP_START) { Ok(sdp) } else { Err(unusable("holds no session description".to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(body: Option<&str>, answer_pointer: &str) -> PlatformOffer {
        PlatformOffer {
            platform: "P4".into(),
            url: "https://h/calls?key=secret".into(),
            shown: "https://h/calls".into(),
            headers: vec![("X-Key".into(), "secret".into())],
            body: body.map(str::to_owned),
            answer_pointer: answer_pointer.to_owned(),
        }
    }

    #[test]
    fn the_description_goes_where_the_settings_put_it() {
        let sdp = "v=0\r\ns=\"x\"\r\n";
        assert_eq!(offer(None, "").body(sdp), (sdp.to_owned(), "application/sdp"));
        let (body, kind) = offer(Some(r#"{"a":{"sdp":"{{offer.sdp}}"},"b":1}"#), "").body(sdp);
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!((body, kind), (serde_json::json!({ "a": { "sdp": sdp }, "b": 1 }), "application/json"));
        assert!(!format!("{:?}", offer(None, "")).contains("secret"));
    }

    #[test]
    fn answers_are_read() {
        let check = |pointer: &str, answer: &[u8], expect: Result<&str, &str>| {
            let expect = expect.map(str::to_owned).map_err(|why| Reason::Unusable(why.to_owned()));
            assert_eq!(offer(None, pointer).read(answer), expect, "{pointer}");
        };
        check("", b"v=0\r\nm=audio", Ok("v=0\r\nm=audio"));
        check("", b"<html>", Err("holds no session description"));
        check("", &[0xff], Err("is no text"));
        check("/a/sdp", br#"{"a":{"sdp":"v=0"}}"#, Ok("v=0"));
        check("/a/sdp", br#"{"a":{"sdp":7}}"#, Err("has no text at /a/sdp (answer_pointer)"));
        check("/a/sdp", br#"{"a":{"sdp":"x"}}"#, Err("holds no session description"));
        check("/a/sdp", b"v=0", Err("is no JSON"));
    }
}
