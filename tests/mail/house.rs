//! The built program with a mail listener, and an agent that is written to.

use std::io;
use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Duration, interval, timeout};

use crate::json::with;
use crate::peers::python::PythonServer;
use crate::program::{KEY, PATIENCE, Program, client, up};

/// Domain of the conversations' addresses.
pub(crate) const DOMAIN: &str = "in.example";
/// Address of the agent.
pub(crate) const AGENT: &str = "desk@agent.example";

/// Returns a port of this machine that nobody has.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A running program with its agent.
pub(super) struct House {
    pub agent: PythonServer,
    /// Port of the program's listener.
    pub listens: u16,
    pub folder: TempDir,
    program: Option<Program>,
    address: String,
    database: Option<String>,
    flags: &'static [&'static str],
}

impl House {
    /// Starts a program whose relay is the agent's server.
    pub(super) async fn start() -> House {
        House::with("").await
    }

    /// Starts one with more lines in `[email]`.
    pub(super) async fn with(lines: &str) -> House {
        let (agent, agent_port) = agent().await;
        House::by_relay(agent, agent_port, lines).await
    }

    /// Starts one with a relay.
    pub(super) async fn by_relay(agent: PythonServer, relay: u16, lines: &str) -> House {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        House::in_folder(folder, agent, (relay, free_port()), (lines, None)).await
    }

    /// Starts one whose calls take place in virtual time, with more settings.
    pub(super) async fn simulating(lines: &str) -> House {
        let (agent, relay) = agent().await;
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        House::begin(folder, agent, (relay, free_port()), (lines, None), &["--sim"]).await
    }

    /// Starts one in a folder, with ports of relay and listener, more settings, and perhaps a database.
    pub(super) async fn in_folder(
        folder: TempDir,
        agent: PythonServer,
        ports: (u16, u16),
        settings: (&str, Option<String>),
    ) -> House {
        House::begin(folder, agent, ports, settings, &[]).await
    }

    async fn begin(
        folder: TempDir,
        agent: PythonServer,
        (relay, listens): (u16, u16),
        (lines, database): (&str, Option<String>),
        flags: &'static [&'static str],
    ) -> House {
        let place = if lines.contains("address =") { String::new() } else { format!("inbound_domain = '{DOMAIN}'\n") };
        let settings =
            format!("[email]\nsmtp_url = 'smtp://127.0.0.1:{relay}'\nlisten = '127.0.0.1:{listens}'\n{place}{lines}\n");
        std::fs::write(folder.path().join("ringer.toml"), settings).expect("it can be written");
        let mut house = House { agent, listens, folder, program: None, address: String::new(), database, flags };
        house.run().await;
        house
    }

    /// Starts the program on what is in its folder.
    pub(super) async fn run(&mut self) {
        let mut program = Program::start(command(self.folder.path(), self.database.as_deref()).args(self.flags));
        self.address = program.address("http://").await;
        self.program = Some(program);
    }

    /// Kills the program at once.
    pub(super) async fn kill(&mut self) {
        self.program.take().expect("it runs").kill().await;
    }

    /// Stops the program in order.
    pub(super) async fn stop(&mut self) {
        let mut program = self.program.take().expect("it runs");
        let id = program.child.id().expect("it runs");
        // SAFETY: the process is our child and has not been waited for.
        unsafe { libc::kill(id as i32, libc::SIGTERM) };
        assert!(program.wait_for_end().await.success());
    }

    /// Sends a request and returns the body of an answer of success.
    pub(super) async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let method = method.parse().expect("a method");
        let mut request = client().request(method, format!("{}{path}", self.address)).header("X-API-KEY", KEY);
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = timeout(PATIENCE, request.send()).await.expect("in time").expect("it answers");
        let (status, body) = (answer.status(), answer.text().await.expect("text"));
        assert!(status.is_success(), "{path}: {status} {body}");
        serde_json::from_str(&body).unwrap_or(Value::String(body))
    }

    /// Returns the bytes of a file that the program hands out.
    pub(super) async fn bytes(&self, path: &str) -> Vec<u8> {
        let request = client().get(format!("{}{path}", self.address)).header("X-API-KEY", KEY);
        let answer = timeout(PATIENCE, request.send()).await.expect("in time").expect("it answers");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.bytes().await.expect("bytes").to_vec()
    }

    /// Queues a conversation and returns its result.
    pub(super) async fn queue(&self, agent: Value, simulation: Value) -> String {
        let agent = with(json!({ "name": "Desk", "mode": "EMAIL", "email_address": AGENT }), agent);
        let agent = self.ask("POST", "/v1/add-agent", agent).await["agent_id"].to_string();
        let simulation = with(json!({ "agent_id": agent, "name": "Booking" }), simulation);
        let simulation = self.ask("POST", "/v1/create-simulation", simulation).await["simulation_id"].clone();
        let human = json!({ "name": "Ann Lee", "intent": "I want a table. For two. At eight." });
        let human = self.ask("POST", "/v1/create-digital-human", json!({ "digital_human": human })).await;
        let path = format!("/v1/simulation/{simulation}/add-digital-humans");
        self.ask("POST", &path, json!({ "digital_human_ids": [human["digital_human"]["id"]] })).await;
        let run = json!({ "simulation_id": simulation.to_string() });
        let run = self.ask("POST", "/v1/queue-simulation-run", run).await;
        run["simulation_result_ids"][0].as_str().expect("a result").to_owned()
    }

    pub(super) async fn result(&self, id: &str) -> Value {
        self.ask("GET", &format!("/v1/retrieve-simulation-result/{id}"), Value::Null).await["simulation_result"].clone()
    }

    pub(super) async fn part(&self, id: &str, part: &str) -> Value {
        self.ask("GET", &format!("/v1/simulation-result/{id}/{part}"), Value::Null).await
    }

    /// Waits for a status and returns the result.
    pub(super) async fn until(&self, id: &str, status: &str) -> Value {
        let mut looks = interval(Duration::from_millis(50));
        let mut last = Value::Null;
        let came = timeout(PATIENCE / 2, async {
            while last["status"] != status {
                looks.tick().await;
                last = self.result(id).await;
            }
        });
        let in_time = came.await.is_ok();
        assert!(in_time, "{status}: {last}");
        last
    }

    /// Waits until so many mails have come to the agent, and returns them.
    pub(super) async fn mails(&self, count: usize) -> Vec<Value> {
        let seen = self.agent.sees(|seen| seen["mails"].as_array().is_some_and(|mails| mails.len() >= count)).await;
        seen["mails"].as_array().expect("mails").clone()
    }

    /// Waits until so many mails of the agent were answered, and returns the answers.
    pub(super) async fn answers(&self, count: usize) -> Vec<i64> {
        let seen = self.agent.sees(|seen| seen["sent"].as_array().is_some_and(|sent| sent.len() >= count)).await;
        seen["sent"].as_array().expect("answers").iter().map(|code| code.as_i64().expect("a code")).collect()
    }

    /// Tells the agent what to answer, to the program's listener.
    pub(super) async fn script(&self, replies: &[&str], headers: Value) {
        let script = json!({ "replies": replies, "port": self.listens, "headers": headers });
        self.agent.tell("/script", script).await;
    }

    /// Sends a mail as the agent to the program's listener, and returns the answer to it.
    pub(super) async fn send(&self, mail: Value) -> i64 {
        let before = self.agent.look().await["sent"].as_array().map_or(0, Vec::len);
        let mail = with(json!({ "port": self.listens, "from": AGENT }), mail);
        self.agent.tell("/send", mail).await;
        *self.answers(before + 1).await.last().expect("an answer")
    }

    /// Returns the names of the events of a result.
    pub(super) async fn events(&self, id: &str) -> Vec<String> {
        let timeline = self.part(id, "timeline").await;
        let events = timeline["events"].as_array().expect("events").clone();
        events.iter().map(|event| event["event"].as_str().expect("a name").to_owned()).collect()
    }

    /// Returns speakers and words of a transcript.
    pub(super) async fn lines(&self, id: &str) -> Vec<(String, String)> {
        let transcript = self.part(id, "transcript").await;
        let text = |entry: &Value, name: &str| entry[name].as_str().expect("a text").to_owned();
        let entries = transcript["entries"].as_array().expect("entries").clone();
        entries.iter().map(|entry| (text(entry, "speaker"), text(entry, "utterance"))).collect()
    }
}

/// A session with a listener, as a mail server holds one.
pub(super) struct Sender {
    stream: BufReader<TcpStream>,
}

impl Sender {
    /// Opens a session with a listener.
    pub(super) async fn open(port: u16) -> io::Result<Sender> {
        let mut sender = Sender { stream: BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?) };
        sender.stream.write_all(b"EHLO agent.example\r\n").await?;
        sender.answers(2).await?;
        Ok(sender)
    }

    /// Sends a mail of somebody at the agent's who is not allowed, and returns once it was acknowledged.
    pub(super) async fn send(&mut self, to: &str, message_id: &str) -> io::Result<()> {
        let envelope = format!("MAIL FROM:<{AGENT}>\r\nRCPT TO:<{to}>\r\nDATA\r\n");
        self.stream.write_all(envelope.as_bytes()).await?;
        let go = self.answers(3).await?;
        assert!(go.starts_with("354"), "{go}");
        let head = format!("From: stranger@agent.example\r\nTo: {to}\r\nSubject: Your booking\r\n");
        let mail = format!("{head}Message-ID: <{message_id}>\r\n\r\nThe table for two is booked.\r\n.\r\n");
        self.stream.write_all(mail.as_bytes()).await?;
        let taken = self.answers(1).await?;
        assert!(taken.starts_with("250"), "{taken}");
        Ok(())
    }

    /// Reads answers and returns the last line.
    async fn answers(&mut self, count: usize) -> io::Result<String> {
        let (mut seen, mut line) = (0, String::new());
        while seen < count {
            line.clear();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            seen += usize::from(line.as_bytes().get(3) == Some(&b' '));
        }
        Ok(line)
    }
}

/// Starts an agent and returns it with the port of its mail server.
pub(crate) async fn agent() -> (PythonServer, u16) {
    let agent = PythonServer::start("mail.py", &[], "http://").await;
    let port = agent.look().await["port"].as_u64().expect("a port") as u16;
    (agent, port)
}

fn command(folder: &Path, database: Option<&str>) -> tokio::process::Command {
    let mut command = up(folder);
    command.env("RINGER_DATABASE_URL", database.unwrap_or_default());
    command.env("RINGER_SECRET_KEY", "what seals the secrets of every engine here");
    command
}
