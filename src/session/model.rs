//! The choice of engine, model and settings: that of the session, and that of a request.

use crate::conversation::choices::ChosenModel;
use crate::protocol::command::ModelChoice;
use crate::protocol::proto::provider::ModelSwitched;
use crate::task::call::{EngineFacts, EngineRef};
use crate::task::settings::CallSettings;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The engine, the model and the settings of a provider call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Selection {
    pub(super) engine: EngineRef,
    /// `None` for the engine's own.
    pub(super) model: Option<String>,
    pub(super) settings: Arc<CallSettings>,
}

/// The engines that can be chosen, and the choice.
#[derive(Clone, Debug)]
pub(super) struct Models {
    facts: BTreeMap<EngineRef, EngineFacts>,
    current: Selection,
    /// The last switch, as it is stored.
    chosen: Option<ChosenModel>,
    /// Tokens of the most that models can be sent, as their providers have said.
    learned: BTreeMap<(EngineRef, String), u64>,
}

impl Models {
    /// The engines of `facts`, the initial one chosen.
    pub(super) fn new(facts: BTreeMap<EngineRef, EngineFacts>) -> Self {
        let settings = facts.get(&EngineRef::Initial).map(|facts| Arc::clone(&facts.settings));
        let settings = settings.unwrap_or_default();
        let current = Selection { engine: EngineRef::Initial, model: None, settings };
        Self { facts, current, chosen: None, learned: BTreeMap::new() }
    }

    /// Replaces the known engines by those of `facts`; the choice stays.
    pub(super) fn know(&mut self, facts: BTreeMap<EngineRef, EngineFacts>) {
        self.facts = facts;
    }

    /// The engine and model of submits that choose none.
    pub(super) fn current(&self) -> &Selection {
        &self.current
    }

    /// Switches to `choice`; returns the event that reports it.
    ///
    /// # Errors
    /// As [`Models::choose`]; the choice stays as it was.
    pub(super) fn switch(&mut self, choice: &ModelChoice) -> Result<ModelSwitched, String> {
        let selection = self.choose(choice)?;
        let before = self.chosen.take().filter(|_| !names_engine(choice));
        self.current = selection;
        let switched = self.switched();
        self.chosen = Some(remembered(before.unwrap_or_default(), choice, &switched));
        Ok(switched)
    }

    /// The last switch, if there was one.
    pub(super) fn chosen(&self) -> Option<&ChosenModel> {
        self.chosen.as_ref()
    }

    /// Restores the switch of an earlier process; returns the event that reports it.
    ///
    /// # Errors
    /// If this process has no such profile, engine or provider: why, for a message. The choice stays as
    /// it was.
    pub(super) fn resume(&mut self, chosen: ChosenModel) -> Result<ModelSwitched, String> {
        let ChosenModel { profile, engine, host, .. } = &chosen;
        let is_it = |name: &EngineRef| {
            let facts = self.facts.get(name);
            facts.is_some_and(|facts| *facts.engine == **engine && facts.provider == *host)
        };
        let reference = if profile.is_empty() {
            let names = [EngineRef::Initial, EngineRef::Named(engine.clone())];
            let place = if host.is_empty() { String::new() } else { format!(" at {host}") };
            names
                .into_iter()
                .find(is_it)
                .ok_or_else(|| format!("the engine {engine:?}{place} is not configured here"))?
        } else {
            let name = EngineRef::Profile(profile.clone());
            self.known(name).ok_or_else(|| format!("there is no profile {profile:?} any more"))?
        };
        let (model, settings) = (chosen.model.clone(), chosen.settings.clone());
        let choice = ModelChoice { model, settings, ..ModelChoice::default() };
        self.current = with_choice(self.own(reference), &choice)?;
        self.chosen = Some(chosen);
        Ok(self.switched())
    }

    /// The current choice, as it is reported.
    pub(super) fn switched(&self) -> ModelSwitched {
        let facts = self.facts.get(&self.current.engine).cloned().unwrap_or_default();
        let profile = match &self.current.engine {
            EngineRef::Profile(name) => name.clone(),
            EngineRef::Initial | EngineRef::Named(_) => String::new(),
        };
        ModelSwitched {
            profile,
            engine: facts.engine.to_string(),
            model: self.model(&self.current).to_owned(),
            host: facts.provider,
        }
    }

    /// The current choice with the changes of `choice`. A profile or an engine brings its own model and
    /// settings.
    ///
    /// # Errors
    /// If there is no such profile, engine or setting, or a setting can't have its value: why, for a
    /// message.
    pub(super) fn choose(&self, choice: &ModelChoice) -> Result<Selection, String> {
        let before = match names_engine(choice) {
            true => self.own(self.engine(choice)?),
            false => self.current.clone(),
        };
        with_choice(before, choice)
    }

    /// An engine with its own model and settings.
    fn own(&self, engine: EngineRef) -> Selection {
        let facts = self.facts.get(&engine);
        let settings = facts.map(|facts| Arc::clone(&facts.settings)).unwrap_or_default();
        Selection { engine, model: None, settings }
    }

    pub(super) fn engine_name(&self, selection: &Selection) -> Arc<str> {
        let facts = self.facts.get(&selection.engine);
        facts.map_or_else(Arc::default, |facts| Arc::clone(&facts.engine))
    }

    /// The name of the model that a selection is for; empty if none is known.
    pub(super) fn model<'a>(&'a self, selection: &'a Selection) -> &'a str {
        let own = || self.facts.get(&selection.engine).map_or("", |facts| facts.model.as_str());
        selection.model.as_deref().unwrap_or_else(own)
    }

    /// Notes what the provider of `selection` says of the most that the model can be sent.
    pub(super) fn learn(&mut self, selection: &Selection, context_tokens: u64) {
        let model = self.model(selection).to_owned();
        self.learned.insert((selection.engine.clone(), model), context_tokens);
    }

    /// Tokens that the model can be sent at most, as the provider of `selection` has said; `None` if it has not.
    pub(super) fn learned(&self, selection: &Selection) -> Option<u64> {
        let model = self.model(selection).to_owned();
        self.learned.get(&(selection.engine.clone(), model)).copied()
    }

    /// Tokens of the most that the model can be sent, if the settings of its engine say so.
    pub(super) fn context_tokens(&self, selection: &Selection) -> Option<u64> {
        let facts = self.facts.get(&selection.engine)?;
        let is_own = selection.model.as_ref().is_none_or(|model| *model == facts.model);
        facts.context_tokens.filter(|_| is_own)
    }

    /// The host of the provider of `selection`.
    pub(super) fn host(&self, selection: &Selection) -> String {
        self.facts.get(&selection.engine).map(|facts| facts.provider.clone()).unwrap_or_default()
    }

    /// The engine that `choice` names, by itself or by its profile.
    fn engine(&self, choice: &ModelChoice) -> Result<EngineRef, String> {
        let (profile, engine) = (choice.profile.trim(), choice.engine.trim());
        if !profile.is_empty() && !engine.is_empty() {
            return Err(
                "a profile has an engine of its own; name a profile or an engine".to_owned()
            );
        }
        if !profile.is_empty() {
            let name = EngineRef::Profile(profile.to_owned());
            return self.known(name).ok_or_else(|| {
                format!("there is no profile {profile:?}; there are: {}", self.names(is_profile))
            });
        }
        if self.facts.get(&EngineRef::Initial).is_some_and(|facts| &*facts.engine == engine) {
            return Ok(EngineRef::Initial);
        }
        self.known(EngineRef::Named(engine.to_owned())).ok_or_else(|| {
            format!("there is no engine {engine:?}; there are: {}", self.names(is_named))
        })
    }

    fn known(&self, name: EngineRef) -> Option<EngineRef> {
        self.facts.contains_key(&name).then_some(name)
    }

    fn names(&self, is_wanted: impl Fn(&EngineRef) -> Option<&str>) -> String {
        match self.facts.keys().filter_map(is_wanted).collect::<Vec<_>>() {
            names if names.is_empty() => "none".to_owned(),
            names => names.join(", "),
        }
    }
}

fn names_engine(choice: &ModelChoice) -> bool {
    !choice.profile.trim().is_empty() || !choice.engine.trim().is_empty()
}

/// A selection with the model and the settings of `choice` in place of its own.
fn with_choice(mut selection: Selection, choice: &ModelChoice) -> Result<Selection, String> {
    let model = choice.model.trim();
    if !model.is_empty() {
        selection.model = Some(model.to_owned());
    }
    let mut settings = CallSettings::default();
    for (name, value) in &choice.settings {
        settings.set(name, value)?;
    }
    if settings != CallSettings::default() {
        selection.settings = Arc::new(selection.settings.overlay(&settings));
    }
    Ok(selection)
}

/// The stored form of a switch after `chosen`, with the same engine.
fn remembered(
    mut chosen: ChosenModel,
    choice: &ModelChoice,
    switched: &ModelSwitched,
) -> ChosenModel {
    chosen.profile.clone_from(&switched.profile);
    chosen.engine.clone_from(&switched.engine);
    chosen.host.clone_from(&switched.host);
    let model = choice.model.trim();
    if !model.is_empty() {
        model.clone_into(&mut chosen.model);
    }
    for (name, value) in &choice.settings {
        if CallSettings::may_hold_key(name) {
            chosen.is_partial = true;
            continue;
        }
        chosen.settings.retain(|known, _| !CallSettings::is_same_name(known, name));
        chosen.settings.insert(name.clone(), value.clone());
    }
    chosen
}

fn is_profile(name: &EngineRef) -> Option<&str> {
    match name {
        EngineRef::Profile(name) => Some(name),
        EngineRef::Initial | EngineRef::Named(_) => None,
    }
}

fn is_named(name: &EngineRef) -> Option<&str> {
    match name {
        EngineRef::Named(name) => Some(name),
        EngineRef::Initial | EngineRef::Profile(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn facts(engine: &'static str, model: &str, temperature: f64) -> EngineFacts {
        let settings =
            CallSettings { temperature: Some(temperature), seed: Some(1), ..Default::default() };
        let (model, provider) = (model.to_owned(), "host".to_owned());
        let (engine, settings) = (engine.into(), Arc::new(settings));
        EngineFacts { engine, model, provider, settings, context_tokens: None }
    }

    fn models() -> Models {
        Models::new(BTreeMap::from([
            (EngineRef::Initial, facts("openai", "a", 0.1)),
            (EngineRef::Profile("fast".to_owned()), facts("openai", "b", 0.2)),
            (EngineRef::Named("gemini".to_owned()), facts("gemini", "c", 0.3)),
        ]))
    }

    fn choice(profile: &str, engine: &str, model: &str, settings: Value) -> ModelChoice {
        let Value::Object(settings) = settings else { panic!("no object") };
        let [profile, engine, model] = [profile, engine, model].map(str::to_owned);
        ModelChoice { profile, engine, model, settings }
    }

    #[test]
    fn a_profile_or_an_engine_brings_its_model_and_settings() {
        let check = |chosen: ModelChoice, engine: &str, model: &str, temperature: f64| {
            let models = models();
            let selection = models.choose(&chosen).expect("a good choice");
            assert_eq!(&*models.engine_name(&selection), engine, "{chosen:?}");
            assert_eq!(models.model(&selection), model, "{chosen:?}");
            assert_eq!(selection.settings.temperature, Some(temperature), "{chosen:?}");
            assert_eq!(selection.settings.seed, Some(1), "{chosen:?}");
        };
        check(choice("", "", "", json!({})), "openai", "a", 0.1);
        check(choice("", "", " x ", json!({})), "openai", "x", 0.1);
        check(choice("fast", "", "", json!({})), "openai", "b", 0.2);
        check(choice("", "gemini", "x", json!({ "temperature": 0.9 })), "gemini", "x", 0.9);
        check(choice("", "openai", "", json!({})), "openai", "a", 0.1);
    }

    #[test]
    fn the_name_of_an_engine_is_that_of_the_process_and_not_of_a_profile() {
        let mut models = models();
        models.switch(&choice("fast", "", "", json!({}))).expect("a profile");
        let switched = models.switch(&choice("", "openai", "", json!({}))).expect("an engine");
        assert_eq!((switched.profile.as_str(), switched.model.as_str()), ("", "a"));
    }

    /// What was switched to before makes no difference, also where it is of that engine or profile.
    #[test]
    fn the_name_of_an_engine_or_profile_brings_its_own_model_and_settings() {
        let check = |profile: &str, engine: &str, model: &str| {
            let mut models = models();
            let named = |model, settings| choice(profile, engine, model, settings);
            models.switch(&named("m2", json!({ "seed": 2 }))).expect("good");
            models.switch(&choice("", "", "m3", json!({ "topP": 0.5 }))).expect("good");
            let selection = models.choose(&named("", json!({}))).expect("good");
            assert_eq!((models.model(&selection), selection.settings.seed), (model, Some(1)));
            let switched = models.switch(&named("", json!({}))).expect("good");
            assert_eq!(switched.model, model);
            let chosen = models.chosen().expect("a choice");
            assert!(chosen.model.is_empty() && chosen.settings.is_empty(), "{chosen:?}");
        };
        check("", "openai", "a");
        check("fast", "", "b");
        check("", "gemini", "c");
    }

    #[test]
    fn a_switch_holds_until_the_next_and_a_wrong_one_changes_nothing() {
        let mut models = models();
        let switched = models.switch(&choice("fast", "", "x", json!({ "seed": 2 }))).expect("good");
        assert_eq!((switched.profile.as_str(), switched.engine.as_str()), ("fast", "openai"));
        assert_eq!((switched.model.as_str(), switched.host.as_str()), ("x", "host"));
        let before = models.current().clone();
        for wrong in [
            choice("slow", "", "", json!({})),
            choice("", "claude", "", json!({})),
            choice("fast", "gemini", "", json!({})),
            choice("", "", "y", json!({ "temprature": 1 })),
            choice("", "", "y", json!({ "seed": "x" })),
        ] {
            assert!(models.switch(&wrong).is_err(), "{wrong:?}");
            assert_eq!(*models.current(), before, "{wrong:?}");
        }
        // The model and the settings of the switch stay; those of a submit are its own.
        let selection = models.choose(&choice("", "", "", json!({ "temperature": 1 })));
        let selection = selection.expect("good");
        assert_eq!((models.model(&selection), selection.settings.seed), ("x", Some(2)));
    }

    #[test]
    fn what_was_switched_to_goes_on_in_another_process() {
        let check = |choices: &[ModelChoice], model: &str, seed: i64, is_partial: bool| {
            let mut before = models();
            for choice in choices {
                before.switch(choice).expect("good");
            }
            let chosen = before.chosen().expect("a choice").clone();
            assert_eq!(chosen.is_partial, is_partial, "{choices:?}");
            assert!(!format!("{chosen:?}").contains("s3cret"), "{chosen:?}");
            let mut after = models();
            let switched = after.resume(chosen.clone()).expect("it is there");
            assert_eq!(after.current(), before.current(), "{choices:?}");
            assert_eq!(
                (switched.model.as_str(), after.current().settings.seed),
                (model, Some(seed))
            );
            assert_eq!(after.chosen(), Some(&chosen));
        };
        check(&[choice("", "", "x", json!({}))], "x", 1, false);
        check(&[choice("fast", "", "", json!({ "seed": 2 }))], "b", 2, false);
        let first = || choice("", "gemini", "x", json!({ "seed": 2, "topP": 0.5 }));
        check(&[first(), choice("", "", "y", json!({ "top_p": 0.1 }))], "y", 2, false);
        check(&[first(), choice("fast", "", "", json!({}))], "b", 1, false);
    }

    #[test]
    fn what_may_hold_a_key_is_not_stored() {
        let mut models = models();
        let headers = json!({ "seed": 2, "extraHeaders": { "X-Key": "s3cret" },
            "extra_body": { "key": "s3cret" } });
        models.switch(&choice("", "", "x", headers)).expect("good");
        let chosen = models.chosen().expect("a choice");
        assert!(chosen.is_partial && !format!("{chosen:?}").contains("s3cret"), "{chosen:?}");
        assert_eq!(chosen.settings.len(), 1);
    }

    #[test]
    fn what_is_not_configured_does_not_go_on() {
        let check = |profile: &str, engine: &str, host: &str, expected: &str| {
            let [profile, engine, host] = [profile, engine, host].map(str::to_owned);
            let chosen = ChosenModel { profile, engine, host, ..ChosenModel::default() };
            let mut models = models();
            let before = models.current().clone();
            let why = models.resume(chosen).expect_err("it is not there");
            assert!(why.contains(expected), "{why}");
            assert_eq!((models.current(), models.chosen()), (&before, None));
        };
        check("slow", "openai", "host", "no profile \"slow\"");
        check("", "claude", "host", "\"claude\" at host is not configured");
        check("", "openai", "elsewhere", "\"openai\" at elsewhere is not configured");
    }
}
