//! Sends a stored recording: whole or in part (RFC 9110 section 14), as it is or as one of its channels, or a stretch
//! of it as a file of its own. It reads the file while it sends, in pieces of a fixed size. It makes no file and no
//! sound of its own.

use std::io::{self, SeekFrom};
use std::path::Path;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream;
use ringer_base::error::{Error, Result};
use ringer_media::clip::wav::{self, Head};
use ringer_media::pcm;
use ringer_store::artifacts::{Direct, Found};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::validators::EntityTag;

/// Bytes of a file that are read at once; a multiple of a stereo frame.
const PIECE_BYTES: u64 = 64 * 1024;
/// Bytes that are read at once from an object store; a multiple of a stereo frame.
const STORED_PIECE_BYTES: u64 = 1024 * 1024;
/// The headers that a recording may have before its samples.
const MAX_HEADER_BYTES: usize = 4096;
const HEADER_BYTES: u64 = wav::HEADER_BYTES as u64;
const LAYOUT: HeaderName = HeaderName::from_static("x-channel-layout");
const FROM_MS: HeaderName = HeaderName::from_static("x-from-ms");
const DURATION_MS: HeaderName = HeaderName::from_static("x-duration-ms");

/// Part of a stereo recording that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The stereo file in whatever format, as it is.
    Whole,
    /// Any file as it is.
    Plain,
    /// One channel: 0 the Digital Human, 1 the agent.
    Channel(usize),
    /// The mean of both channels.
    Mix,
}

/// Stretch of a recording that is sent as a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// First millisecond of the stretch.
    pub from_ms: i64,
    /// Millisecond before which it ends; `None`: the end of the recording.
    pub to_ms: Option<i64>,
}

impl Stretch {
    /// Returns the first frame, and the one after the last, among `count` frames.
    ///
    /// # Errors
    /// [`Error::Refused`] for a stretch that is empty, or lies behind the end.
    fn frames(self, rate_hz: u32, count: u64) -> Result<(u64, u64)> {
        let rate = u64::from(rate_hz);
        let place = |ms: i64| u64::try_from(ms).unwrap_or(0).saturating_mul(rate) / 1000;
        if self.to_ms.is_some_and(|to_ms| to_ms <= self.from_ms) {
            return Err(Error::Refused("from_ms must be below to_ms".to_owned()));
        }
        let (first, last) = (place(self.from_ms), self.to_ms.map_or(count, place).min(count));
        if first >= count {
            let duration_ms = count.saturating_mul(1000) / rate.max(1);
            return Err(Error::Refused(format!("from_ms lies behind the recording, which is {duration_ms} ms long")));
        }
        Ok((first, last))
    }
}

/// Sends `path` seen as `view`, whole or a stretch of it, or the part of that which the `Range` header asks for, as
/// content of type `kind`.
///
/// # Errors
/// The file is not there, is not 16-bit PCM, or has no such stretch.
pub async fn send(
    path: &Path,
    (view, stretch): (View, Option<Stretch>),
    kind: &'static str,
    headers: &HeaderMap,
) -> Result<Response> {
    let not_there = |_| Error::NotAvailable("Recording not available".to_owned());
    let file = File::open(path).await.map_err(not_there)?;
    let tag = EntityTag::of_file(&file.metadata().await.map_err(Error::internal)?, &form_of(view, stretch));
    send_from(Held::Here(file), tag, (view, stretch), kind, headers).await
}

/// Returns what tells a form of a recording from its others.
fn form_of(view: View, stretch: Option<Stretch>) -> String {
    match stretch {
        None => view.name().to_owned(),
        Some(Stretch { from_ms, to_ms }) => {
            format!("{}-{from_ms}-{}", view.name(), to_ms.map_or_else(String::new, |to_ms| to_ms.to_string()))
        }
    }
}

/// Sends a file as [`send`] does, from wherever it is. One in an object store is read while it is sent. All of it may
/// be sent by the store itself, at an address that holds for a while.
///
/// # Errors
/// As [`send`]; [`Error::Unavailable`] while the store does not answer.
pub async fn send_found(
    found: Found,
    (view, stretch): (View, Option<Stretch>),
    kind: &'static str,
    headers: &HeaderMap,
) -> Result<Response> {
    let file = match found {
        Found::Here(path) => return send(&path, (view, stretch), kind, headers).await,
        Found::Stored(file) => file,
    };
    if view.is_file()
        && stretch.is_none()
        && let Some(address) = file.address().await?
    {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        let fields = response.headers_mut();
        fields.insert(LOCATION, HeaderValue::from_str(&address).map_err(Error::internal)?);
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        return Ok(response);
    }
    let tag = EntityTag::of_digest(file.sha256(), &form_of(view, stretch));
    send_from(Held::Stored(file), tag, (view, stretch), kind, headers).await
}

async fn send_from(
    file: Held,
    tag: EntityTag,
    (view, stretch): (View, Option<Stretch>),
    kind: &'static str,
    headers: &HeaderMap,
) -> Result<Response> {
    if tag.is_known(headers) {
        return Ok(tag.not_modified());
    }
    let source = Source::open(file, view, stretch).await?;
    let (length, place) = (source.length, source.place);
    let asked = if tag.has_range(headers) { requested_range(headers, length) } else { Asked::All };
    let (status, from, to) = match asked {
        Asked::All => (StatusCode::OK, 0, length),
        Asked::Part(from, to) => (StatusCode::PARTIAL_CONTENT, from, to),
        Asked::Beyond => return Ok(beyond(length)),
    };
    let mut response = Response::new(source.body(from, to));
    *response.status_mut() = status;
    tag.add_to(&mut response);
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(to - from));
    if let Some(Place { from_ms, duration_ms }) = place {
        fields.insert(FROM_MS, HeaderValue::from(from_ms));
        fields.insert(DURATION_MS, HeaderValue::from(duration_ms));
    }
    if view == View::Whole {
        fields.insert(LAYOUT, HeaderValue::from_static("digital_human,agent"));
    }
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {from}-{}/{length}", to - 1);
        fields.insert(CONTENT_RANGE, HeaderValue::from_str(&range).map_err(Error::internal)?);
    }
    Ok(response)
}

/// Sends all of `file`, which may have no name, as content of type `kind`. It is made for the request, so its tag is a
/// hash of it.
///
/// # Errors
/// When it cannot be read.
pub async fn send_all(file: std::fs::File, kind: &'static str, headers: &HeaderMap) -> Result<Response> {
    let mut source = Source::open(Held::Here(File::from_std(file)), View::Plain, None).await?;
    let length = source.length;
    let (mut hash, mut at) = (Sha256::new(), 0);
    while at < length {
        let piece = source.piece(at, length).await.map_err(Error::internal)?;
        if piece.is_empty() {
            break;
        }
        hash.update(&piece);
        at += piece.len() as u64;
    }
    let tag = EntityTag::of_hash(hash);
    if tag.is_known(headers) {
        return Ok(tag.not_modified());
    }
    let mut response = Response::new(source.body(0, length));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    tag.add_to(&mut response);
    Ok(response)
}

fn beyond(length: u64) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    if let Ok(range) = HeaderValue::from_str(&format!("bytes */{length}")) {
        response.headers_mut().insert(CONTENT_RANGE, range);
    }
    response
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    All,
    /// Bytes from the first position to before the second.
    Part(u64, u64),
    Beyond,
}

/// One byte range; several, or what is no range, is the whole.
// Why not a crate: `headers` refuses a suffix longer than the file (RFC 9110 section 14.1.2 sends all of it), and takes
// `9-2`; `tower-http` serves whole files, and not one channel of them.
fn requested_range(headers: &HeaderMap, length: u64) -> Asked {
    let value = headers.get(RANGE).and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
    let Some((first, last)) = value.filter(|value| !value.contains(',')).and_then(|value| value.split_once('-')) else {
        return Asked::All;
    };
    let part = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => (first, last.saturating_add(1).min(length)),
        (Ok(first), Err(_)) if last.trim().is_empty() => (first, length),
        (Err(_), Ok(last)) if first.trim().is_empty() => (length.saturating_sub(last), length),
        _ => return Asked::All,
    };
    if part.0 < part.1 { Asked::Part(part.0, part.1) } else { Asked::Beyond }
}

/// Returns the error of a file that cannot be read; the store's own is kept.
fn unreadable(error: io::Error) -> Error {
    let own = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).cloned();
    own.unwrap_or_else(|| Error::internal(error))
}

/// A file in the data folder or in an object store.
enum Held {
    Here(File),
    Stored(Direct),
}

impl Held {
    async fn size(&self) -> io::Result<u64> {
        match self {
            Held::Here(file) => Ok(file.metadata().await?.len()),
            Held::Stored(file) => Ok(file.bytes()),
        }
    }

    /// Returns the most bytes that are read at once: a request to a store takes longer than a read.
    fn piece_bytes(&self) -> u64 {
        match self {
            Held::Here(_) => PIECE_BYTES,
            Held::Stored(_) => STORED_PIECE_BYTES,
        }
    }

    async fn read_at(&mut self, at: u64, count: u64) -> io::Result<Vec<u8>> {
        let file = match self {
            Held::Here(file) => file,
            Held::Stored(file) => return file.read_range(at, count).await.map_err(io::Error::other),
        };
        file.seek(SeekFrom::Start(at)).await?;
        let mut bytes = Vec::with_capacity(count as usize);
        file.take(count).read_to_end(&mut bytes).await?;
        Ok(bytes)
    }
}

/// A file and how positions of the answer map onto it.
struct Source {
    file: Held,
    view: View,
    header: Vec<u8>,
    /// Offset of the samples in the file, in bytes; of a whole file, 0.
    data_at: u64,
    /// Bytes of the answer.
    length: u64,
    /// Place of a stretch in its recording.
    place: Option<Place>,
}

/// Place of a stretch in its recording.
#[derive(Clone, Copy)]
struct Place {
    from_ms: u64,
    duration_ms: u64,
}

impl Source {
    async fn open(mut file: Held, view: View, stretch: Option<Stretch>) -> Result<Source> {
        let size = file.size().await.map_err(unreadable)?;
        if view.is_file() && stretch.is_none() {
            return Ok(Source { file, view, header: Vec::new(), data_at: 0, length: size, place: None });
        }
        let start = file.read_at(0, size.min(MAX_HEADER_BYTES as u64)).await.map_err(unreadable)?;
        let is_read = |head: &Head| head.format.is_pcm16() && (head.format.channels == 2 || view == View::Plain);
        let head = wav::head(&start, true).ok().flatten().filter(is_read);
        let head = head.ok_or_else(|| Error::internal("not a stereo recording of 16-bit PCM"))?;
        let (rate_hz, data_at) = (head.format.rate_hz, head.data_at as u64);
        let (stored, sent) = (head.format.channels, if view.is_file() { head.format.channels } else { 1 });
        let frame_bytes = 2 * u64::from(stored).max(1);
        // The size in the header of an unfinished recording may be outdated, so the file's length counts.
        let count = size.saturating_sub(data_at) / frame_bytes;
        let (first, last) = match stretch {
            None => (0, count),
            Some(stretch) => stretch.frames(rate_hz, count)?,
        };
        let data_bytes = (last - first) * 2 * u64::from(sent);
        let ms = |frames: u64| frames * 1000 / u64::from(rate_hz).max(1);
        Ok(Source {
            file,
            view,
            header: header(rate_hz, sent, data_bytes).to_vec(),
            data_at: data_at + first * frame_bytes,
            length: HEADER_BYTES + data_bytes,
            place: stretch.map(|_| Place { from_ms: ms(first), duration_ms: ms(count) }),
        })
    }

    /// Returns a body of the bytes from `from` to before `to`, read while they are sent.
    fn body(self, from: u64, to: u64) -> Body {
        let pieces = stream::unfold((self, from), move |(mut source, at)| async move {
            if at >= to {
                return None;
            }
            let piece = source.piece(at, to).await;
            let next = match &piece {
                Ok(bytes) if !bytes.is_empty() => at + bytes.len() as u64,
                // A fault or a file that became shorter ends the answer.
                _ => to,
            };
            Some((piece, (source, next)))
        });
        Body::from_stream(pieces)
    }

    async fn piece(&mut self, at: u64, to: u64) -> io::Result<Bytes> {
        if at < self.header.len() as u64 {
            let end = to.min(self.header.len() as u64);
            return Ok(Bytes::copy_from_slice(&self.header[at as usize..end as usize]));
        }
        let count = (to - at).min(self.file.piece_bytes());
        let at = at - self.header.len() as u64;
        if self.view.is_file() {
            return self.file.read_at(self.data_at + at, count).await.map(Bytes::from);
        }
        let (first, last) = (at / 2, (at + count).div_ceil(2));
        let stereo = self.file.read_at(self.data_at + first * 4, (last - first) * 4).await?;
        let mono = pcm::to_bytes(&self.view.samples(&stereo));
        let skip = (at % 2) as usize;
        Ok(Bytes::from(mono).slice(skip.min(stereo.len() / 2)..(skip + count as usize).min(stereo.len() / 2)))
    }
}

impl View {
    fn is_file(self) -> bool {
        matches!(self, View::Whole | View::Plain)
    }

    /// Returns the word that tells its content from other views of the file.
    fn name(self) -> &'static str {
        match self {
            View::Whole | View::Plain => "file",
            View::Channel(0) => "0",
            View::Channel(_) => "1",
            View::Mix => "mix",
        }
    }

    /// Returns the samples of interleaved bytes with two channels.
    fn samples(self, stereo: &[u8]) -> Vec<i16> {
        match self {
            View::Channel(channel) => pcm::channel(stereo, usize::from(channel == 1), 2),
            View::Mix => pcm::mean_of_channels(stereo),
            View::Whole | View::Plain => pcm::channel(stereo, 0, 2),
        }
    }
}

/// The header of a file of 16-bit PCM with `data_bytes` bytes of samples.
fn header(rate_hz: u32, channels: u16, data_bytes: u64) -> [u8; wav::HEADER_BYTES] {
    let most = u32::MAX - wav::HEADER_BYTES as u32 + 8;
    wav::header(rate_hz, channels, &[], u32::try_from(data_bytes).unwrap_or(most))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::header::{ETAG, IF_NONE_MATCH, IF_RANGE};

    use super::*;

    const FRAMES: i16 = 30_000;

    /// Returns a stereo file: left counts up, right counts down, with a chunk of another kind before the samples.
    fn stereo() -> Vec<u8> {
        let mut file = Vec::new();
        let data = FRAMES as u32 * 4;
        file.extend_from_slice(b"RIFF");
        file.extend_from_slice(&(data + 36 + 12).to_le_bytes());
        file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x02\0");
        file.extend_from_slice(&16_000u32.to_le_bytes());
        file.extend_from_slice(&64_000u32.to_le_bytes());
        file.extend_from_slice(b"\x04\0\x10\0LIST\x03\0\0\0abc\0data");
        file.extend_from_slice(&data.to_le_bytes());
        for n in 0..FRAMES {
            file.extend_from_slice(&n.to_le_bytes());
            file.extend_from_slice(&(-n - 2).to_le_bytes());
        }
        file
    }

    async fn get(view: View, range: Option<&'static str>) -> (u16, Vec<u8>, HeaderMap) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recording.wav");
        std::fs::write(&path, stereo()).expect("writes");
        let range = range.map(|range| (RANGE, HeaderValue::from_static(range)));
        get_of(&path, view, range.into_iter().collect()).await
    }

    async fn get_of(path: &Path, view: View, headers: HeaderMap) -> (u16, Vec<u8>, HeaderMap) {
        get_stretch(path, (view, None), headers).await.expect("sends")
    }

    /// The answer to a request for a stretch: its status, body and headers.
    type Got = (u16, Vec<u8>, HeaderMap);

    async fn get_stretch(path: &Path, seen: (View, Option<Stretch>), headers: HeaderMap) -> Result<Got> {
        let response = send(path, seen, "audio/wav", &headers).await?;
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 1 << 20).await.expect("reads");
        Ok((parts.status.as_u16(), body.to_vec(), parts.headers))
    }

    #[tokio::test]
    async fn a_stretch_is_a_file_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recording.wav");
        std::fs::write(&path, stereo()).expect("writes");
        let cut = |from_ms, to_ms| Some(Stretch { from_ms, to_ms });
        let ask = async |view, stretch, range: Option<&'static str>| {
            let range = range.map(|range| (RANGE, HeaderValue::from_static(range)));
            get_stretch(&path, (view, stretch), range.into_iter().collect()).await
        };
        let (_, whole, headers) = ask(View::Whole, cut(10, Some(1210)), None).await.expect("sends");
        let samples: Vec<i16> = pcm::from_bytes(&whole[44..]);
        assert_eq!(
            (samples.len(), &samples[..2], &samples[38_398..]),
            (38_400, &[160, -162][..], &[19_359, -19_361][..])
        );
        assert_eq!([&headers["x-from-ms"], &headers["x-duration-ms"]], ["10", "1875"]);
        assert_eq!(headers["x-channel-layout"], "digital_human,agent");
        let head = wav::head(&whole[..44], true).expect("a header").expect("whole");
        let told = (head.format.channels, head.format.rate_hz, head.data_bytes);
        assert_eq!(told, (2, 16_000, Some(38_400 * 2)));
        let (status, part, _) = ask(View::Whole, cut(10, Some(1210)), Some("bytes=40-51")).await.expect("sends");
        assert_eq!((status, &part[..]), (206, &whole[40..52]));
        let (_, agent, headers) = ask(View::Channel(1), cut(1000, None), None).await.expect("sends");
        let samples: Vec<i16> = pcm::from_bytes(&agent[44..]);
        assert_eq!((samples.len(), samples[0], samples[13_999]), (14_000, -16_002, -30_001));
        let tag = ask(View::Channel(1), cut(1000, Some(1500)), None).await.expect("sends").2[ETAG].clone();
        assert_ne!(tag, headers[ETAG], "another stretch");
        let (_, late, _) = ask(View::Mix, cut(1800, Some(i64::MAX)), None).await.expect("sends");
        assert_eq!(late.len(), 44 + 2 * 1200, "it ends with the recording");
        for (stretch, expect) in [
            (cut(5, Some(5)), "from_ms must be below to_ms"),
            (cut(1875, None), "from_ms lies behind the recording, which is 1875 ms long"),
            (cut(i64::MAX, None), "from_ms lies behind the recording, which is 1875 ms long"),
        ] {
            let refused = ask(View::Whole, stretch, None).await;
            assert!(matches!(&refused, Err(Error::Refused(why)) if why == expect), "{stretch:?}: {refused:?}");
        }
    }

    #[tokio::test]
    async fn whole_channels_and_mix() {
        assert_eq!(get(View::Whole, None).await.1, stereo());
        for (view, expect) in
            [(View::Channel(0), (|n| n) as fn(i16) -> i16), (View::Channel(1), |n| -n - 2), (View::Mix, |_| -1)]
        {
            let (status, body, _) = get(view, None).await;
            assert_eq!((status, body.len()), (200, 44 + FRAMES as usize * 2), "{view:?}");
            let samples: Vec<i16> = pcm::from_bytes(&body[44..]);
            assert!(samples.iter().enumerate().all(|(n, sample)| *sample == expect(n as i16)), "{view:?}");
        }
    }

    #[tokio::test]
    async fn parts_are_sent_of_the_same_recording_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recording.wav");
        std::fs::write(&path, stereo()).expect("writes");
        let tag = async |view| get_of(&path, view, HeaderMap::new()).await.2[ETAG].clone();
        let whole = tag(View::Whole).await;
        assert_ne!(tag(View::Channel(0)).await, tag(View::Channel(1)).await);
        assert_eq!(tag(View::Whole).await, whole);
        let foreign = HeaderValue::from_static("\"other\"");
        for (name, value, range, expect) in [
            (IF_RANGE, &whole, "bytes=0-9", 206),
            (IF_RANGE, &foreign, "bytes=0-9", 200),
            (IF_RANGE, &foreign, "bytes=99999999-", 200),
            (IF_NONE_MATCH, &whole, "bytes=0-9", 304),
            (IF_NONE_MATCH, &foreign, "bytes=0-9", 206),
        ] {
            let headers = [(name.clone(), value.clone()), (RANGE, HeaderValue::from_static(range))];
            let (status, body, answered) = get_of(&path, View::Whole, headers.into_iter().collect()).await;
            assert_eq!((status, &answered[ETAG]), (expect, &whole), "{name}: {value:?}");
            assert_eq!(body.is_empty(), status == 304);
        }
        std::fs::write(&path, &stereo()[..1000]).expect("writes");
        assert_ne!(tag(View::Whole).await, whole, "another recording");
    }

    #[tokio::test]
    async fn what_is_made_for_a_request_has_the_tag_of_its_content() {
        let file = || {
            let mut file = tempfile::tempfile().expect("a file");
            std::io::Write::write_all(&mut file, b"packets").expect("writes");
            file
        };
        let first = send_all(file(), "x/y", &HeaderMap::new()).await.expect("sends");
        let tag = first.headers()[ETAG].clone();
        let known = HeaderMap::from_iter([(IF_NONE_MATCH, tag.clone())]);
        let again = send_all(file(), "x/y", &known).await.expect("sends");
        assert_eq!((again.status().as_u16(), &again.headers()[ETAG]), (304, &tag));
        let body = to_bytes(first.into_body(), 100).await.expect("reads");
        assert_eq!(&body[..], b"packets");
    }

    #[tokio::test]
    async fn a_range_is_the_same_part_of_the_whole() {
        for view in [View::Whole, View::Channel(1)] {
            let whole = get(view, None).await.1;
            let length = whole.len();
            for (range, from, to) in [
                ("bytes=0-0", 0, 1),
                ("bytes=10-99", 10, 100),
                ("bytes=43-50001", 43, 50_002),
                ("bytes=1001-", 1001, length),
                ("bytes=-7", length - 7, length),
                ("bytes=5-99999999", 5, length),
                ("bytes=0-18446744073709551615", 0, length),
            ] {
                let (status, body, headers) = get(view, Some(range)).await;
                assert_eq!(status, 206, "{range}");
                assert_eq!(body, whole[from..to], "{range} of {view:?}");
                assert_eq!(headers[CONTENT_RANGE], format!("bytes {from}-{}/{length}", to - 1).as_str());
            }
            assert_eq!(get(view, Some("bytes=99999999-")).await.0, 416);
            assert_eq!(get(view, Some("bytes=9-2")).await.0, 200);
            assert_eq!(get(view, Some("lines=1-2")).await.0, 200);
        }
    }
}
