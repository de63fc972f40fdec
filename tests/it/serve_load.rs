//! A fleet under load while everything around it fails: three nodes, PostgreSQL, a balancer where there is one, a
//! provider that streams, and clients that ask, run tools, lose their connections and come back.
//!
//! The short form has each fault that passes quickly, once. The long form, in which faults come at random, is asked for by
//! variables:
//!
//! ```sh
//! DUOLOGUE_LOAD_CLIENTS=1000 DUOLOGUE_LOAD_SECONDS=600 DUOLOGUE_LOAD_PROGRAM=target/release/duologue \
//!     cargo test --locked --features serve --test it -- --ignored --nocapture serve_load::
//! ```
//!
//! `DUOLOGUE_LOAD_FAULT=Kill` has one kind of fault alone, `DUOLOGUE_LOAD_SEED=2` others,
//! `DUOLOGUE_LOAD_PACE_MICROS=500` twice the time between two deltas, and with `DUOLOGUE_LOAD_THINKING_MILLIS=20000` each
//! client waits for up to 20 s between two prompts.

mod balancer;
mod client;
mod model;

use self::balancer::Balancer;
use self::client::{Asked, Client, Turns, World, turns};
use crate::long::Chance;
use crate::paced_provider;
use crate::postgres_server::{Database, Loss, PASSWORD, PostgresServer, Proxy, free_port};
use crate::process::eventually;
use crate::serve_node::Node;
use crate::server::{KEY, Launch, report};
use duologue::protocol::proto::fleet::ExportRequest;
use duologue::protocol::proto::rpc::rpc_line::Frame as Body;
use rustix::process::Signal;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

const NODES: usize = 3;

/// Clients of the short form.
const CLIENTS: usize = 12;

/// A client of so many shares the conversation of the one before it.
const SHARED_ONE_OF: usize = 4;

/// Between two deltas of an answer, for each client: the machine has the same work however many there are.
const PACE_MICROS_PER_CLIENT: u64 = 250;

/// A commit is lost out of so many.
const COMMITS: u64 = 20;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A node is killed, and another one started in its place.
    Kill,
    /// A node is stopped until the others have taken what it held, and goes on.
    Pause,
    /// The same, for a moment.
    BriefPause,
    /// All nodes are restarted, one after the other, as by an upgrade.
    Upgrade,
    /// The database server ends by this signal, and is started again.
    Database(&'static str),
    /// A commit of each node is lost, and its connection.
    Commit(Loss),
}

const FAULTS: [Fault; 8] = [
    Fault::Kill,
    Fault::Database("INT"),
    Fault::Commit(Loss::Answer),
    Fault::Pause,
    Fault::Upgrade,
    Fault::Commit(Loss::Request),
    Fault::BriefPause,
    Fault::Database("QUIT"),
];

impl Fault {
    /// Whether it takes as long as a lease is valid, and a silent node is trusted.
    fn takes_long(self) -> bool {
        self == Self::Pause
    }

    /// Whether runs may be cut off by it.
    fn ends_runs(self) -> bool {
        match self {
            Self::Kill | Self::Pause => true,
            Self::BriefPause | Self::Upgrade | Self::Database(_) | Self::Commit(_) => false,
        }
    }
}

/// The number in a variable.
fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}: {value:?} is no number")))
}

#[test]
#[ignore = "takes minutes"]
fn clients_lose_nothing_whatever_fails() {
    needs!(Postgres);
    let clients = number("DUOLOGUE_LOAD_CLIENTS").map_or(CLIENTS, |it| it as usize);
    let long = Duration::from_secs(number("DUOLOGUE_LOAD_SECONDS").unwrap_or_default());
    let only = std::env::var("DUOLOGUE_LOAD_FAULT").unwrap_or_default();
    let is_wanted = |fault: &Fault| match only.as_str() {
        "" => !long.is_zero() || !fault.takes_long(),
        only => format!("{fault:?}").starts_with(only),
    };
    let faults: Vec<_> = FAULTS.into_iter().filter(is_wanted).collect();
    let mut load = Load::start(clients);
    load.settle("begin");
    let began = Instant::now();
    let mut chance = Chance(number("DUOLOGUE_LOAD_SEED").unwrap_or(1));
    let mut below = |count: usize| chance.below(count as u64) as usize;
    for fault in &faults {
        load.fail(*fault, below(NODES));
    }
    while began.elapsed() < long {
        load.fail(faults[below(faults.len())], below(NODES));
    }
    load.finish();
}

/// Everything that runs.
struct Load {
    // Dropped first: clients of a node that is gone have nothing to say.
    runtime: Runtime,
    tasks: Vec<JoinHandle<Vec<Asked>>>,
    world: Arc<World>,
    ports: [u16; NODES],
    nodes: Vec<Node>,
    proxies: Vec<Proxy>,
    base_url: String,
    database: Database,
    server: PostgresServer,
    _balancer: Option<Balancer>,
}

fn session(client: usize) -> String {
    let is_shared = client % SHARED_ONE_OF == SHARED_ONE_OF - 1;
    format!("session-{}", client - usize::from(is_shared))
}

impl Load {
    fn start(clients: usize) -> Self {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
        let ports = [(); NODES].map(|()| free_port());
        let balancer = Balancer::start(&ports);
        let addresses = match &balancer {
            Some(balancer) => vec![balancer.address.clone()],
            None => ports.iter().map(|port| format!("127.0.0.1:{port}")).collect(),
        };
        let turns = (0..clients).map(|_| Turns::default()).collect();
        let thinking = number("DUOLOGUE_LOAD_THINKING_MILLIS").unwrap_or_default();
        let thinking = Duration::from_millis(thinking);
        let world = Arc::new(World { addresses, turns, thinking, ..World::default() });
        let model = model::model(Arc::clone(&world.broken));
        let pace = number("DUOLOGUE_LOAD_PACE_MICROS").unwrap_or(PACE_MICROS_PER_CLIENT);
        let pace = Duration::from_micros(pace * clients as u64);
        let base_url = runtime.block_on(paced_provider::start(pace, model)).expect("a provider");
        let server = PostgresServer::start();
        let database = server.database();
        let proxies = ports.iter().map(|_| Proxy::start(database.port)).collect();
        let (tasks, nodes) = Default::default();
        let _balancer = balancer;
        let mut load = Self {
            runtime,
            tasks,
            world,
            ports,
            nodes,
            proxies,
            base_url,
            database,
            server,
            _balancer,
        };
        load.nodes = (0..NODES).map(|number| load.node(number)).collect();
        for number in 0..clients {
            let client = Client::new(number, session(number), Arc::clone(&load.world));
            load.tasks.push(load.runtime.spawn(client.run()));
        }
        load
    }

    fn node(&self, number: usize) -> Node {
        let dsn = self.database.bare_dsn_at(self.proxies[number].port);
        let listen = format!("127.0.0.1:{}", self.ports[number]);
        let advertised = format!("http://{listen}");
        let engine = ["serve", "--engine", "openai", "--model", "scripted"];
        let own = ["--listen", &listen, "--advertise", &advertised, "--store", &dsn];
        // What is left for a moment may be taken by another node.
        let rest = ["--base-url", &self.base_url, "--on-busy", "queue", "--idle-ms", "100"];
        // Runs take long while the machine has more to do than it can.
        let drain = ["--drain-ms", "60000"];
        let args = [&engine[..], &own, &rest, &drain].concat();
        let launch = match std::env::var_os("DUOLOGUE_LOAD_PROGRAM") {
            None => Launch::new(&args),
            Some(program) => Launch::program(program, &args),
        };
        Node::launch(launch.secret("PGPASSWORD", PASSWORD).secret("DUOLOGUE_API_KEY", KEY))
    }

    fn count(&self) -> u64 {
        self.world.turns.iter().map(|it| it.ended.load(Ordering::Relaxed)).sum()
    }

    /// Waits until each client has had the end of a request that began after this.
    fn settle(&self, after: &str) {
        let world = &self.world;
        let begun = world.turns.iter().map(|it| it.begun.load(Ordering::Relaxed));
        let begun: Vec<_> = begun.collect();
        let (began, counted) = (Instant::now(), self.count());
        eventually("every client goes on", || {
            assert!(!self.tasks.iter().any(JoinHandle::is_finished), "a client has failed");
            let mut all = world.turns.iter().zip(&begun);
            all.all(|(turns, begun)| turns.ended.load(Ordering::Relaxed) > *begun).then_some(())
        });
        let (counts, of) = (&world.counts, Ordering::Relaxed);
        report(&format!(
            "{after}: {:.1} s, {} turns; in all {} frames ({} checked), {} attached, {} snapshots, {} lost, {} tools, {} stopped\n",
            began.elapsed().as_secs_f64(),
            self.count() - counted,
            counts.frames.load(of),
            counts.checked.load(of),
            counts.attached.load(of),
            counts.snapshots.load(of),
            counts.lost.load(of),
            counts.tools.load(of),
            counts.stopped.load(of),
        ));
    }

    fn stopped(&self) -> u64 {
        self.world.counts.stopped.load(Ordering::Relaxed)
    }

    fn fail(&mut self, fault: Fault, victim: usize) {
        let stopped = self.stopped();
        match fault {
            Fault::Kill => {
                self.nodes[victim].server.signal(Signal::KILL);
                self.nodes[victim].server.wait_end();
                self.settle("a node is dead");
                self.nodes[victim] = self.node(victim);
            }
            Fault::Pause | Fault::BriefPause => {
                let node = &self.nodes[victim].server;
                node.signal(Signal::STOP);
                if fault == Fault::Pause {
                    self.settle("a node stands still");
                } else {
                    let before = self.count();
                    eventually("the others go on", || (self.count() > before).then_some(()));
                }
                node.signal(Signal::CONT);
            }
            Fault::Upgrade => {
                for number in 0..NODES {
                    let began = Instant::now();
                    self.nodes[number].server.signal(Signal::TERM);
                    let ended = self.nodes[number].server.exit_status();
                    assert_eq!(ended.code(), Some(0), "{:?}", self.nodes[number].server);
                    report(&format!("it took {:.1} s to end\n", began.elapsed().as_secs_f64()));
                    self.nodes[number] = self.node(number);
                }
            }
            Fault::Database(signal) => self.server.restart(signal),
            Fault::Commit(how) => {
                let after = 1 + (self.count() % COMMITS) as u32;
                self.proxies.iter().for_each(|proxy| proxy.lose(after, how));
                eventually("a commit is lost", || {
                    self.proxies.iter().any(Proxy::has_lost).then_some(())
                });
            }
        }
        self.settle(&format!("{fault:?}"));
        assert!(fault.ends_runs() || self.stopped() == stopped, "{fault:?} has ended a run");
    }

    /// Has the clients end, and holds what they were shown against what is stored.
    fn finish(self) {
        self.world.is_over.store(true, Ordering::Relaxed);
        let mut asked: HashMap<String, Vec<Asked>> = HashMap::new();
        let Self { runtime, tasks, world, nodes, database, .. } = self;
        eventually("the clients end", || tasks.iter().all(JoinHandle::is_finished).then_some(()));
        for (number, task) in tasks.into_iter().enumerate() {
            let own = runtime.block_on(task).expect("no client has failed");
            asked.entry(session(number)).or_default().extend(own);
        }
        let mut client = nodes[0].client();
        for (session, asked) in &asked {
            let request = ExportRequest { session_id: session.clone() };
            let stored = runtime.block_on(async {
                let mut frames = client.export(request).await.expect("an export").into_inner();
                let mut stored = Vec::new();
                while let Some(frame) = frames.message().await.expect("a frame") {
                    if let Some(Body::Snapshot(snapshot)) = &frame.frame {
                        stored = turns(snapshot);
                    }
                }
                stored
            });
            check(session, asked, &stored);
        }
        check_log(&database, asked.len());
        assert_eq!(*world.wrong.lock().expect("no panic"), [""; 0]);
        assert_eq!(*world.broken.lock().expect("no panic"), [""; 0]);
    }
}

/// Each prompt is one turn, and its answer is what was shown.
fn check(session: &str, asked: &[Asked], stored: &[(String, String)]) {
    assert_eq!(asked.len(), stored.len(), "{session}: {asked:#?} {stored:#?}");
    let answers: HashMap<_, _> = stored.iter().map(|(prompt, text)| (prompt, text)).collect();
    for it in asked {
        let stored = answers.get(&it.prompt).unwrap_or_else(|| panic!("{session}: no {it:?}"));
        let whole = model::text(&it.prompt);
        match it.status.as_str() {
            "ok" => assert!(**stored == whole && it.shown == whole, "{session}: {it:?} {stored:?}"),
            _ => assert!(
                whole.starts_with(*stored) && stored.starts_with(&it.shown),
                "{session}: {it:?} {stored:?}"
            ),
        }
    }
}

/// The ordinals of each session in the store rise from 1.
fn check_log(database: &Database, sessions: usize) {
    let ordinals: Vec<_> = database.events().iter().map(|event| event.0).collect();
    let begins = ordinals.iter().filter(|ordinal| **ordinal == 1).count();
    assert_eq!((begins, ordinals.first()), (sessions, Some(&1)));
    let rises = |pair: &[u64]| pair[0] < pair[1] || pair[1] == 1;
    assert!(ordinals.windows(2).all(rises), "{ordinals:?}");
}
