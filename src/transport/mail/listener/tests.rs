//! Sessions on sockets of this machine.

use async_trait::async_trait;
use ringer_base::tls::Roots;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::TlsConnector;

use super::*;

/// A postbox that knows the addresses of one domain and keeps what comes.
#[derive(Default)]
struct Shelf {
    mails: Mutex<Vec<Arrival>>,
}

#[async_trait]
impl Postbox for Shelf {
    async fn knows(&self, address: &str) -> Option<bool> {
        Some(address.ends_with("@x.example"))
    }

    async fn store(&self, arrival: Arrival) -> Stored {
        if arrival.raw.starts_with(b"bad") {
            return Stored::Refused("it is bad");
        }
        self.mails.lock().push(arrival);
        Stored::Kept
    }
}

struct Place {
    address: SocketAddr,
    shelf: Arc<Shelf>,
    _stop: tokio_util::sync::DropGuard,
}

async fn listen(identity: Option<Identity>) -> Place {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = ListenerSettings { listen, host: "mx.example".to_owned(), identity };
    let listener = SmtpListener::bind(settings).await.expect("a port");
    let (address, shelf) = (listener.address().expect("an address"), Arc::new(Shelf::default()));
    let stop = CancellationToken::new();
    let tasks = Tasks::new();
    tasks.spawn("listener", listener.serve(shelf.clone(), tasks.clone(), stop.clone()));
    Place { address, shelf, _stop: stop.drop_guard() }
}

async fn connect(place: &Place) -> BufReader<TcpStream> {
    BufReader::new(TcpStream::connect(place.address).await.expect("it listens"))
}

/// Sends bytes and returns the first words of the next so many answers.
async fn say<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut BufReader<S>,
    bytes: &[u8],
    answers: usize,
) -> Vec<String> {
    stream.write_all(bytes).await.expect("it takes them");
    stream.flush().await.expect("it takes them");
    let mut words = Vec::new();
    while words.len() < answers {
        let mut line = String::new();
        if stream.read_line(&mut line).await.expect("an answer") == 0 {
            words.push("closed".to_owned());
            break;
        }
        if line.as_bytes().get(3) != Some(&b'-') {
            words.push(line.split(' ').next().unwrap_or_default().to_owned());
        }
    }
    words
}

const ENVELOPE: &[u8] = b"EHLO a\r\nMAIL FROM:<b@c.example>\r\nRCPT TO:<d@x.example>\r\nDATA\r\n";

#[tokio::test]
async fn a_mail_ends_only_with_a_full_stop_between_two_crlf() {
    let place = listen(None).await;
    let mut stream = connect(&place).await;
    assert_eq!(say(&mut stream, ENVELOPE, 5).await, ["220", "250", "250", "250", "354"]);
    let body = b"Subject: x\r\n\r\n..two\r\n.\nMAIL FROM:<evil@x>\n.\r\nend\n.\r\n..\r\n";
    assert_eq!(say(&mut stream, &[&body[..], b".\r\nQUIT\r\n"].concat(), 2).await, ["250", "221"]);
    let mails = place.shelf.mails.lock();
    assert_eq!(mails.len(), 1);
    let kept = String::from_utf8_lossy(&mails[0].raw);
    assert_eq!(kept, "Subject: x\r\n\r\n.two\r\n\nMAIL FROM:<evil@x>\n.\r\nend\n.\r\n.\r\n");
    assert_eq!(
        (mails[0].envelope_from.as_str(), mails[0].recipients.as_slice()),
        ("b@c.example", &["d@x.example".to_owned()][..],)
    );
}

#[tokio::test]
async fn a_large_mail_and_a_bad_one_are_refused_after_their_end() {
    let place = listen(None).await;
    let mut stream = connect(&place).await;
    say(&mut stream, ENVELOPE, 5).await;
    let line = [&b"x".repeat(998)[..], b"\r\n"].concat();
    for _ in 0..26 * 1024 * 1024 / line.len() {
        stream.write_all(&line).await.expect("it reads on");
    }
    assert_eq!(say(&mut stream, b".\r\n", 1).await, ["552"]);
    assert_eq!(say(&mut stream, &[ENVELOPE, b"bad\r\n.\r\n"].concat(), 5).await, ["250", "250", "250", "354", "554"]);
    assert!(place.shelf.mails.lock().is_empty());
}

#[tokio::test]
async fn a_source_that_guesses_addresses_is_not_heard_any_more() {
    let place = listen(None).await;
    let mut stream = connect(&place).await;
    say(&mut stream, b"EHLO a\r\nMAIL FROM:<>\r\n", 3).await;
    for _ in 0..19 {
        assert_eq!(say(&mut stream, b"RCPT TO:<d@y.example>\r\n", 1).await, ["550"]);
    }
    assert_eq!(say(&mut stream, b"RCPT TO:<d@y.example>\r\n", 2).await, ["421", "closed"]);
    assert_eq!(say(&mut connect(&place).await, b"", 1).await, ["421"]);
}

#[tokio::test]
async fn a_source_has_ten_sessions() {
    let place = listen(None).await;
    let mut open = Vec::new();
    for _ in 0..10 {
        let mut stream = connect(&place).await;
        assert_eq!(say(&mut stream, b"", 1).await, ["220"]);
        open.push(stream);
    }
    assert_eq!(say(&mut connect(&place).await, b"", 1).await, ["421"]);
}

#[tokio::test]
async fn commands_in_the_packet_of_starttls_are_dropped() {
    let made = rcgen::generate_simple_self_signed(vec!["mx.example".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let certificate = made.cert.der().clone();
    let place = listen(Some(Identity::new(vec![certificate.clone()], key).expect("they fit"))).await;
    let mut stream = connect(&place).await;
    say(&mut stream, b"EHLO a\r\n", 2).await;
    let behind = b"STARTTLS\r\nMAIL FROM:<evil@x.example>\r\nRCPT TO:<d@x.example>\r\n";
    assert_eq!(say(&mut stream, behind, 1).await, ["220"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("root.pem");
    std::fs::write(&file, made.cert.pem()).expect("it can be written");
    let config = Roots::from_file(&file).expect("roots").config();
    let name = ServerName::try_from("mx.example").expect("a name");
    let secured = TlsConnector::from(Arc::new(config)).connect(name, stream.into_inner()).await.expect("TLS");
    let mut secured = BufReader::new(secured);
    assert_eq!(say(&mut secured, b"DATA\r\nEHLO a\r\nDATA\r\n", 3).await, ["503", "250", "503"]);
    assert_eq!(say(&mut secured, &[&ENVELOPE[8..], b"hi\r\n.\r\n"].concat(), 4).await, ["250", "250", "354", "250"]);
    assert_eq!(place.shelf.mails.lock().len(), 1);
}
