//! The engines of a conversation: the one that it begins with, and those that a request can choose
//! by a profile or by the name of an engine.

use super::spec::{CallSettings, CallSpec};
use super::{Engine, Running, Sink};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names an engine of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EngineRef {
    /// The one that it begins with.
    #[default]
    Initial,
    /// The one of that profile.
    Profile(String),
    /// The one of that name, with the settings of the environment.
    Named(String),
}

/// The engines of a conversation.
#[derive(Debug)]
pub struct Engines {
    initial: Entry,
    others: BTreeMap<EngineRef, Entry>,
}

/// An engine and the settings that its calls have.
#[derive(Debug)]
struct Entry {
    engine: Engine,
    settings: Arc<CallSettings>,
}

/// What the session knows of an engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineFacts {
    /// The engine's name.
    pub engine: &'static str,
    /// The model that answers unless a request names another.
    pub model: String,
    /// The provider's host.
    pub provider: String,
    /// The settings that calls have unless a request has others.
    pub settings: Arc<CallSettings>,
}

impl Engines {
    /// The engine that a conversation begins with, and the settings of its calls.
    pub fn new(initial: Engine, settings: CallSettings) -> Self {
        let initial = Entry { engine: initial, settings: Arc::new(settings) };
        Self { initial, others: BTreeMap::new() }
    }

    /// Adds an engine that a request can choose.
    pub fn add(&mut self, name: EngineRef, engine: Engine, settings: CallSettings) {
        self.others.insert(name, Entry { engine, settings: Arc::new(settings) });
    }

    /// The engine that a conversation begins with.
    pub fn initial(&self) -> &Engine {
        &self.initial.engine
    }

    /// What is known of each engine.
    pub(crate) fn facts(&self) -> BTreeMap<EngineRef, EngineFacts> {
        let initial = (EngineRef::Initial, self.initial.facts());
        let others = self.others.iter().map(|(name, entry)| (name.clone(), entry.facts()));
        [initial].into_iter().chain(others).collect()
    }

    /// Begins a call of the engine that `spec` names; of the initial one if there is none of that
    /// name, which the session does not let happen.
    pub(crate) fn start(&self, spec: CallSpec, sink: Sink) -> Running {
        let entry = self.others.get(&spec.engine).unwrap_or(&self.initial);
        entry.engine.start(spec, sink)
    }
}

impl From<Engine> for Engines {
    fn from(engine: Engine) -> Self {
        Self::new(engine, CallSettings::default())
    }
}

impl Entry {
    fn facts(&self) -> EngineFacts {
        EngineFacts {
            engine: self.engine.name(),
            model: self.engine.model().to_owned(),
            provider: self.engine.provider(),
            settings: Arc::clone(&self.settings),
        }
    }
}
