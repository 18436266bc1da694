//! Addresses of a room server: of its WebSockets, and of the page that tells why one was refused.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use prost::Message;
use url::Url;

use super::super::messages::{ClientInfo, ConnectionSettings, JoinRequest, WrappedJoinRequest};
use super::PROTOCOL;

/// Number of a client that is none of the software kits.
const UNKNOWN_SDK: i32 = 0;

/// Way in which a room is joined.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// One connection for both directions, for which the client makes the offers: version 1.
    Joint,
    /// A connection for each direction; the server makes the offers of the one that is heard by: version 0.
    Split,
}

/// A connection that is taken up instead of a room that is joined.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rejoin<'a> {
    /// Name of the participant.
    pub sid: &'a str,
}

/// Returns the address of the WebSocket.
///
/// # Errors
/// Says what is wrong with the address of the server.
pub fn address(server: &str, flow: Flow, rejoin: Option<Rejoin<'_>>) -> Result<String, String> {
    let mut url = base(server, true)?;
    let version = env!("CARGO_PKG_VERSION");
    match flow {
        Flow::Split => {
            extend(&mut url, "rtc");
            let mut query = url.query_pairs_mut();
            query.append_pair("protocol", &PROTOCOL.to_string());
            // The agent's track is asked for by name, and no other one.
            query.append_pair("auto_subscribe", "0").append_pair("adaptive_stream", "0");
            query.append_pair("sdk", "ringer").append_pair("version", version);
            if let Some(Rejoin { sid }) = rejoin {
                query.append_pair("reconnect", "1").append_pair("sid", sid);
            }
        }
        Flow::Joint => {
            extend(&mut url, "rtc/v1");
            let request = JoinRequest {
                client_info: Some(ClientInfo {
                    sdk: UNKNOWN_SDK,
                    version: version.to_owned(),
                    protocol: PROTOCOL as i32,
                    os: "linux".to_owned(),
                }),
                connection_settings: Some(ConnectionSettings { auto_subscribe: false, adaptive_stream: false }),
                reconnect: rejoin.is_some(),
                participant_sid: rejoin.map(|rejoin| rejoin.sid.to_owned()).unwrap_or_default(),
                ..JoinRequest::default()
            };
            let wrapped = WrappedJoinRequest { compression: 0, join_request: request.encode_to_vec() };
            url.query_pairs_mut().append_pair("join_request", &URL_SAFE.encode(wrapped.encode_to_vec()));
        }
    }
    Ok(url.into())
}

/// Returns the address at which the server tells why it lets nobody in.
pub fn validation(server: &str) -> Option<String> {
    let mut url = base(server, false).ok()?;
    extend(&mut url, "rtc/validate");
    url.query_pairs_mut().append_pair("protocol", &PROTOCOL.to_string());
    Some(url.into())
}

/// Reads the address of a server, `ws`, `wss`, `http` or `https`.
fn base(server: &str, for_socket: bool) -> Result<Url, String> {
    let mut url = Url::parse(server.trim()).map_err(|_| "is no URL".to_owned())?;
    let is_tls = match url.scheme() {
        "ws" | "http" => false,
        "wss" | "https" => true,
        _ => return Err("begins with none of ws://, wss://, http:// and https://".to_owned()),
    };
    if url.host_str().is_none_or(str::is_empty) {
        return Err("has no host".to_owned());
    }
    let scheme = match (for_socket, is_tls) {
        (true, true) => "wss",
        (true, false) => "ws",
        (false, true) => "https",
        (false, false) => "http",
    };
    url.set_scheme(scheme).map_err(|()| "cannot be used".to_owned())?;
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// Adds segments to the path, whatever slashes it ends with.
fn extend(url: &mut Url, path: &str) {
    let path = format!("{}/{path}", url.path().trim_end_matches('/'));
    url.set_path(&path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_made_of_the_servers() {
        let check = |server: &str, expect: Result<&str, &str>| {
            let found = address(server, Flow::Split, None);
            let found = found.as_deref().map(|url| url.split('?').next().unwrap_or_default());
            assert_eq!(found.map_err(String::as_str), expect, "{server}");
        };
        check("wss://rooms.example", Ok("wss://rooms.example/rtc"));
        check("https://rooms.example/", Ok("wss://rooms.example/rtc"));
        check("http://127.0.0.1:7880", Ok("ws://127.0.0.1:7880/rtc"));
        check("ws://rooms.example/a//?x=1#y", Ok("ws://rooms.example/a/rtc"));
        check("wss://user:secret@rooms.example", Ok("wss://rooms.example/rtc"));
        check("rooms.example", Err("is no URL"));
        check("ftp://rooms.example", Err("begins with none of ws://, wss://, http:// and https://"));
        assert_eq!(
            address("ws://h", Flow::Split, Some(Rejoin { sid: "PA_a&b" })).as_deref(),
            Ok(format!(
                "ws://h/rtc?protocol=16&auto_subscribe=0&adaptive_stream=0&sdk=ringer&version={}&reconnect=1&sid=PA_a%26b",
                env!("CARGO_PKG_VERSION")
            )
            .as_str())
        );
        assert_eq!(validation("wss://h/a").as_deref(), Some("https://h/a/rtc/validate?protocol=16"));
    }

    #[test]
    fn a_single_connection_is_asked_for_in_the_address() {
        let url = address("ws://h", Flow::Joint, Some(Rejoin { sid: "PA_a" })).expect("an address");
        let url = Url::parse(&url).expect("a URL");
        assert_eq!(url.path(), "/rtc/v1");
        let (_, request) = url.query_pairs().next().expect("a request");
        let wrapped = URL_SAFE.decode(request.as_bytes()).expect("it is encoded");
        let wrapped = WrappedJoinRequest::decode(&wrapped[..]).expect("it is protobuf");
        let request = JoinRequest::decode(&wrapped.join_request[..]).expect("it is protobuf");
        assert_eq!((request.reconnect, request.participant_sid.as_str()), (true, "PA_a"));
        assert_eq!(request.connection_settings.map(|settings| settings.auto_subscribe), Some(false));
    }
}
