//! What a node costs beside a server of gRPC that only sends deltas back: time of a delta, processor time and memory
//! of each conversation, what it asks of PostgreSQL, and how soon another node takes over.

mod postgres;
mod server;
mod streams;

use self::postgres::Postgres;
use self::server::Server;
use self::streams::{Said, Stream, answer, attach};
use crate::child::Program;
use crate::paced_provider;
use crate::store::Folder;
use crate::table::{Aim, Unit, median, quantile, row};
use std::io::{self, Write};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Streams at once.
const STREAMS: [usize; 2] = [1_000, 5_000];

/// The pace of a model, which is made slower until the machine carries all streams: two times, four times and so on.
const PACE: Duration = Duration::from_millis(5);
const PACE_MAX: Duration = Duration::from_secs(2);

/// How long each answer takes at the pace that is carried, and how much longer before it is not.
const ANSWER: Duration = Duration::from_secs(8);
const LATE: f64 = 1.08;

/// Deltas of an answer that are measured, at least.
const DELTAS_MIN: usize = 16;

const CPU_RATIO: f64 = 1.3;
const CONVERSATION_KIBIBYTES_MAX: f64 = 40.0;
const IDLE_KIBIBYTES_MAX: f64 = 2.0;
const CONNECTIONS_MAX: f64 = 16.0;

/// Turns of one client after the other, of which the statements are counted.
const TURNS: usize = 200;

/// Nodes that are killed.
const TAKE_OVERS: usize = 7;
const TAKE_OVER_MILLIS_MAX: f64 = 15_000.0;

pub(crate) fn measure() -> io::Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut pace = PACE;
        for streams in STREAMS {
            pace = deltas(streams, pace).await?;
        }
        turns().await?;
        take_over().await?;
        idle().await
    })
}

/// Streams that were measured.
#[derive(Default)]
struct Measured {
    ages: Vec<f64>,
    /// How long nine of ten answers took at most, by what they take at their pace.
    lateness: f64,
    cpu_micros_per_delta: f64,
    kibibytes_per_stream: f64,
    statements_per_delta: f64,
    connections: f64,
}

/// Deltas of an answer at this pace.
fn deltas_at(pace: Duration) -> usize {
    ((ANSWER.as_secs_f64() / pace.as_secs_f64()) as usize).max(DELTAS_MIN)
}

/// Measures so many streams at this pace, or the fastest one that is carried; returns it.
async fn deltas(streams: usize, mut pace: Duration) -> io::Result<Duration> {
    let postgres = Postgres::start()?;
    let ours = loop {
        let measured = node(streams, pace, &postgres).await?;
        if measured.lateness <= LATE || pace >= PACE_MAX {
            break measured;
        }
        pace *= 2;
        let factor = ((measured.lateness / 4.0) as u32).checked_next_power_of_two();
        pace *= factor.unwrap_or(1).max(1);
    };
    let echo = echo(streams, pace).await?;
    let of = format!("{streams} streams at a {} ms pace", pace.as_millis());
    for (name, part) in [("median", 0.5), ("p99", 0.99)] {
        let [ours, echo] = [&ours, &echo].map(|it| quantile(&it.ages, part));
        row(&format!("{of}: a delta, {name}"), Unit::Millis, ours, Some(echo), Aim::None);
    }
    let (cpu, reference) = (ours.cpu_micros_per_delta, echo.cpu_micros_per_delta);
    let what = format!("{of}: processor time of a delta");
    row(&what, Unit::Micros, cpu, Some(reference), Aim::Ratio(CPU_RATIO));
    let what = format!("{of}: memory of each");
    let (memory, reference) = (ours.kibibytes_per_stream, Some(echo.kibibytes_per_stream));
    row(&what, Unit::Kibibytes, memory, reference, Aim::Value(CONVERSATION_KIBIBYTES_MAX));
    let what = format!("{of}: statements for 1,000 deltas");
    row(&what, Unit::Count, ours.statements_per_delta * 1e3, None, Aim::None);
    let what = format!("{of}: connections to PostgreSQL");
    row(&what, Unit::Count, ours.connections, None, Aim::Value(CONNECTIONS_MAX));
    Ok(pace)
}

/// Each stream is an answer of a provider.
async fn node(streams: usize, pace: Duration, postgres: &Postgres) -> io::Result<Measured> {
    let deltas = deltas_at(pace);
    let provider = paced_provider::start(pace, move |_| answer(deltas)).await?;
    let dsn = postgres.dsn();
    let node = with_provider(
        &provider,
        &["--store", &dsn, "--max-runs", "10000", "--tenant-runs", "10000"],
    )?;
    // What is needed only once.
    attach(&node, "first", 1).await?[0].turn("r").await?;
    let before = node.kibibytes()?;
    let name = format!("{streams}-{}", pace.as_millis());
    let all = attach(&node, &name, streams).await?;
    let turn = |mut stream: Stream| async move {
        let said = stream.turn("r").await?;
        Ok((said, Some(stream)))
    };
    let (cpu, statements) = (node.cpu_millis()?, postgres.statements()?);
    let work = all.into_iter().map(turn);
    let (mut measured, memory) = together(work, pace * deltas as u32, || node.kibibytes()).await?;
    let count = (streams * deltas) as f64;
    measured.cpu_micros_per_delta = (node.cpu_millis()? - cpu) * 1e3 / count;
    measured.statements_per_delta = (postgres.statements()? - statements) / count;
    measured.connections = postgres.connections()?;
    measured.kibibytes_per_stream = (memory - before) / streams as f64;
    Ok(measured)
}

/// Each stream sends its deltas, and gets them back.
async fn echo(streams: usize, pace: Duration) -> io::Result<Measured> {
    let deltas = deltas_at(pace);
    let server = Server::start(Program::EchoDeltas, &[])?;
    drop(attach(&server, "first", 1).await?);
    let before = server.kibibytes()?;
    let all = attach(&server, "s", streams).await?;
    let cpu = server.cpu_millis()?;
    let work = all.into_iter().map(move |stream: Stream| async move {
        let said = stream.echo(deltas, pace).await?;
        Ok((said, None))
    });
    let (mut measured, memory) =
        together(work, pace * deltas as u32, || server.kibibytes()).await?;
    measured.cpu_micros_per_delta = (server.cpu_millis()? - cpu) * 1e3 / (streams * deltas) as f64;
    measured.kibibytes_per_stream = (memory - before) / streams as f64;
    Ok(measured)
}

/// Runs all streams at the same time, and asks for the memory in the middle.
async fn together<W>(
    work: impl Iterator<Item = W>,
    answer: Duration,
    memory: impl Fn() -> io::Result<f64>,
) -> io::Result<(Measured, f64)>
where
    W: Future<Output = io::Result<(Said, Option<Stream>)>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for it in work {
        tasks.spawn(it);
    }
    tokio::time::sleep(answer / 2).await;
    let memory = memory()?;
    let mut measured = Measured::default();
    // They stay attached until all have ended.
    let (mut held, mut spans) = (Vec::new(), Vec::new());
    while let Some(ended) = tasks.join_next().await {
        let (said, stream) = ended.map_err(io::Error::other)??;
        spans.push(said.span().as_secs_f64());
        measured.ages.extend(said.ages);
        held.extend(stream);
    }
    let (took, planned) = (quantile(&spans, 0.9), answer.as_secs_f64());
    measured.lateness = took / planned;
    // Each attempt takes a minute or so.
    writeln!(io::stderr(), "answers of {planned:.1} s took {took:.1} s")?;
    Ok((measured, memory))
}

fn with_provider(base_url: &str, args: &[&str]) -> io::Result<Server> {
    let engine = ["--engine", "openai", "--model", "model", "--base-url", base_url];
    Server::node(&[&engine, args].concat())
}

/// What short turns ask of PostgreSQL if there is nothing to share a transaction with.
async fn turns() -> io::Result<()> {
    let postgres = Postgres::start()?;
    let dsn = postgres.dsn();
    let node = Server::node(&["--engine", "echo", "--store", &dsn])?;
    let mut stream = attach(&node, "s", 1).await?;
    stream[0].turn("r").await?;
    let (before, began) = (postgres.statements()?, Instant::now());
    for number in 0..TURNS {
        stream[0].turn(&format!("r{number}")).await?;
    }
    let millis = began.elapsed().as_secs_f64() * 1e3 / TURNS as f64;
    let statements = (postgres.statements()? - before) / TURNS as f64;
    row("a short turn alone: statements", Unit::Count, statements, None, Aim::None);
    row("a short turn alone: from submit to done", Unit::Millis, millis, None, Aim::None);
    Ok(())
}

/// From the end of a node to the first frame of a conversation that it held, at another node of this machine.
async fn take_over() -> io::Result<()> {
    let postgres = Postgres::start()?;
    let dsn = postgres.dsn();
    let options = ["--engine", "echo", "--store", &dsn, "--advertise", "http://127.0.0.1:0"];
    let mut millis = Vec::new();
    for round in 0..TAKE_OVERS {
        let (one, other) = (Server::node(&options)?, Server::node(&options)?);
        let name = format!("round-{round}");
        attach(&one, &name, 1).await?[0].turn("r").await?;
        let channel = other.channel().await?;
        one.kill();
        let began = Instant::now();
        Stream::attach(&channel, format!("{name}-0")).await?;
        millis.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let what = "a node is killed: to the first frame at another one of the machine";
    row(what, Unit::Millis, median(&millis), None, Aim::Value(TAKE_OVER_MILLIS_MAX));
    Ok(())
}

/// Conversations of one turn that nobody uses: in memory, and after they have left it. The allocator keeps what the
/// first of them took for those that come next, so what each leaves behind shows with the second round of them.
async fn idle() -> io::Result<()> {
    const IDLE_MS: &str = "20000";
    let [_, conversations] = STREAMS;
    let folder = Folder::named("idle")?;
    let store = folder.path("store").display().to_string();
    let node = Server::node(&["--engine", "echo", "--store", &store, "--idle-ms", IDLE_MS])?;
    attach(&node, "first", 1).await?[0].turn("r").await?;
    let before = node.kibibytes()?;
    let attached = one_turn_each(&node, "s", conversations).await?;
    let emptied = node.kibibytes()?;
    one_turn_each(&node, "t", conversations).await?;
    let each = |kibibytes: f64| kibibytes / conversations as f64;
    let what = format!("an idle conversation of {conversations}");
    let with_client = each(attached - before);
    row(&format!("{what}, with a client"), Unit::Kibibytes, with_client, None, Aim::None);
    let left = each(node.kibibytes()? - emptied);
    let aim = Aim::Value(IDLE_KIBIBYTES_MAX);
    row(&format!("{what}, after it left memory"), Unit::Kibibytes, left, None, aim);
    Ok(())
}

/// Has conversations of one turn each, and waits until they have left memory; returns the memory before that.
async fn one_turn_each(node: &Server, name: &str, conversations: usize) -> io::Result<f64> {
    let mut all = attach(node, name, conversations).await?;
    for stream in &mut all {
        stream.turn("r").await?;
    }
    let attached = node.kibibytes()?;
    drop(all);
    emptied(node).await?;
    Ok(attached)
}

/// Waits until the node holds nothing.
async fn emptied(node: &Server) -> io::Result<()> {
    use duologue::protocol::proto::fleet::ServerInfoRequest;
    use duologue::protocol::proto::fleet::fleet_client::FleetClient;
    const EMPTIED_MAX: Duration = Duration::from_secs(120);
    let mut client = FleetClient::new(node.channel().await?);
    let looking = async {
        loop {
            let info = client.server_info(ServerInfoRequest {}).await.map_err(io::Error::other)?;
            if info.into_inner().conversations == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(EMPTIED_MAX, looking).await?
}
