//! The engines of a conversation: the one that it begins with, and those that a request can choose
//! by a profile or by the name of an engine.

use super::{CallSettings, CallSpec, Engine, EngineFacts, EngineRef, Running, Sink};
use crate::protocol::command::ModelChoice;
use std::collections::BTreeMap;
#[cfg(feature = "serve")]
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The engines of a conversation.
#[derive(Debug)]
pub struct Engines {
    initial: Entry,
    others: BTreeMap<EngineRef, Entry>,
    /// A warning for the first request that names the engine.
    notes: BTreeMap<EngineRef, Vec<String>>,
    /// The engines that requests choose by their own names.
    named: Option<Later>,
    /// The engines of profiles, whose files are read for them.
    profiles: Option<Later>,
}

/// Adds engines once a request names one: most conversations never do.
struct Later(Box<dyn FnOnce(&mut Engines) + Send + Sync>);

/// An engine and the settings that its calls have.
#[derive(Debug)]
struct Entry {
    /// Several entries may share it, so that its key is got once.
    engine: Arc<dyn Engine>,
    /// The model in the place of the engine's own.
    model: Option<String>,
    settings: Arc<CallSettings>,
    /// Tokens of the most that the model can be sent, if that was configured.
    context_tokens: Option<u64>,
}

impl Engines {
    /// The engine that a conversation begins with, and the settings of its calls.
    pub fn new(initial: impl Engine, settings: CallSettings) -> Self {
        Self {
            initial: Entry::new(Arc::new(initial), None, settings),
            others: BTreeMap::new(),
            notes: BTreeMap::new(),
            named: None,
            profiles: None,
        }
    }

    /// Adds an engine that a request can choose.
    pub fn add(&mut self, name: EngineRef, engine: impl Engine, settings: CallSettings) {
        self.others.insert(name, Entry::new(Arc::new(engine), None, settings));
    }

    /// Adds the engine that the conversation begins with, its address and key included, with another
    /// model, if one is named, and other settings.
    pub(crate) fn add_variant(
        &mut self,
        name: EngineRef,
        model: Option<String>,
        settings: CallSettings,
    ) {
        let Entry { engine, model: own, .. } = &self.initial;
        let entry = Entry::new(Arc::clone(engine), model.or_else(|| own.clone()), settings);
        self.others.insert(name, entry);
    }

    /// Notes how many tokens the model of an engine can be sent.
    pub(crate) fn note_context(&mut self, name: &EngineRef, tokens: Option<u64>) {
        let entry = self.others.get_mut(name);
        let initial = (*name == EngineRef::Initial).then_some(&mut self.initial);
        if let Some(entry) = initial.or(entry) {
            entry.context_tokens = tokens;
        }
    }

    /// Has `notes` reported when a request names the engine `name` for the first time.
    pub(crate) fn note(&mut self, name: EngineRef, notes: Vec<String>) {
        self.notes.insert(name, notes);
    }

    /// Adds more engines with `load` when a request names an engine for the first time.
    pub(crate) fn add_named_later(&mut self, load: impl FnOnce(&mut Self) + Send + Sync + 'static) {
        self.named = Some(Later(Box::new(load)));
    }

    /// Of the engines that requests choose by their own names, offers those in `names` alone, and the one that the
    /// conversation begins with. Profiles are offered as before.
    #[cfg(feature = "serve")]
    pub(crate) fn offer_named(&mut self, names: BTreeSet<String>) {
        let load = self.named.take().filter(|_| !names.is_empty());
        self.add_named_later(move |engines| {
            if let Some(Later(load)) = load {
                load(engines);
            }
            engines.others.retain(|name, _| match name {
                EngineRef::Named(name) => names.contains(name),
                EngineRef::Initial | EngineRef::Profile(_) => true,
            });
            // As it is configured, and not as the environment has it.
            let initial = EngineRef::Named(engines.initial.engine.name().to_owned());
            let settings = CallSettings::clone(&engines.initial.settings);
            engines.add_variant(initial, None, settings);
        });
    }

    /// Adds more engines with `load` when a request names a profile for the first time.
    pub(crate) fn add_profiles_later(
        &mut self,
        load: impl FnOnce(&mut Self) + Send + Sync + 'static,
    ) {
        self.profiles = Some(Later(Box::new(load)));
    }

    /// Prepares for a request that makes `choice`: returns the facts of all engines if some were added, and
    /// the warnings.
    pub(crate) fn prepare(
        &mut self,
        choice: &ModelChoice,
    ) -> (Option<BTreeMap<EngineRef, EngineFacts>>, Vec<String>) {
        let (profile, engine) = (choice.profile.trim(), choice.engine.trim());
        let named = self.named.take_if(|_| !engine.is_empty());
        let profiles = self.profiles.take_if(|_| !profile.is_empty());
        let has_more = named.is_some() || profiles.is_some();
        for Later(load) in named.into_iter().chain(profiles) {
            load(self);
        }
        let notes = self.notes.remove(&EngineRef::Profile(profile.to_owned()));
        (has_more.then(|| self.facts()), notes.unwrap_or_default())
    }

    /// The engine that a conversation begins with.
    pub fn initial(&self) -> &dyn Engine {
        &*self.initial.engine
    }

    /// The facts of each engine.
    pub(crate) fn facts(&self) -> BTreeMap<EngineRef, EngineFacts> {
        let initial = (EngineRef::Initial, self.initial.facts());
        let others = self.others.iter().map(|(name, entry)| (name.clone(), entry.facts()));
        [initial].into_iter().chain(others).collect()
    }

    /// The facts of an engine; an unknown name means the initial one.
    pub(crate) fn facts_of(&self, name: &EngineRef) -> EngineFacts {
        self.others.get(name).unwrap_or(&self.initial).facts()
    }

    /// Begins a call of the engine that `spec` names. The session validates the name; an unknown one
    /// means the initial engine.
    pub(crate) fn start(&self, mut spec: CallSpec, sink: Sink) -> Running {
        let entry = self.others.get(&spec.engine).unwrap_or(&self.initial);
        spec.model = spec.model.or_else(|| entry.model.clone());
        entry.engine.start(spec, sink)
    }
}

impl<E: Engine> From<E> for Engines {
    fn from(engine: E) -> Self {
        Self::new(engine, CallSettings::default())
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

impl Entry {
    fn new(engine: Arc<dyn Engine>, model: Option<String>, settings: CallSettings) -> Self {
        Self { engine, model, settings: Arc::new(settings), context_tokens: None }
    }

    fn facts(&self) -> EngineFacts {
        EngineFacts {
            engine: self.engine.name().into(),
            model: self.model.clone().unwrap_or_else(|| self.engine.model().to_owned()),
            provider: self.engine.provider(),
            settings: Arc::clone(&self.settings),
            context_tokens: self.context_tokens,
        }
    }
}
