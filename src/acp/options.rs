//! What the person can choose for a session: the model, how much it reasons, and what happens to tool
//! calls. Pure.

use crate::protocol::command::ModelChoice;
use crate::protocol::proto::provider::ModelSwitched;
use crate::session::approval::ApprovalMode;
use serde_json::{Map, Value, json};

/// Ids of the options.
const MODEL: &str = "model";
const EFFORT: &str = "thought_level";
pub(super) const MODE: &str = "mode";

/// The value for what the provider chooses.
const DEFAULT_EFFORT: &str = "default";

/// The words that most providers know.
const EFFORTS: [&str; 3] = ["low", "medium", "high"];

/// The name of the setting.
const EFFORT_SETTING: &str = "reasoning_effort";

/// A model that the person can choose.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    /// For clients: unique in the list, and the same for the same model later.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) choice: ModelChoice,
    /// The engine and the model, as events name them.
    pub(crate) engine: String,
    pub(crate) model: String,
    /// How much it reasons where nobody has chosen that; `None` leaves it to the provider.
    pub(crate) effort: Option<String>,
}

/// How much the model reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Effort {
    /// As is configured for the model.
    #[default]
    Configured,
    /// As the person has chosen, also for models that are chosen later; `None` leaves it to the provider.
    Chosen(Option<String>),
}

/// The options of a session and what is chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    models: Vec<Model>,
    /// What the person has chosen last, which is shown.
    chosen: Selected,
    /// What the conversation goes on with, as far as it has said so.
    confirmed: Selected,
    approval: ApprovalMode,
}

/// What answers.
#[derive(Clone, Debug, Default)]
struct Selected {
    /// Id of the model.
    model: String,
    effort: Effort,
}

/// A change that the person wants.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// Another model, or other settings: the conversation is asked for it, and may refuse.
    Model(ModelChoice, Chosen),
    Approval,
}

/// A choice that the conversation has not made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// The model of this id.
    Model(String),
    Effort(Effort),
}

impl Options {
    /// The options with these models, the first of which answers.
    pub(super) fn new(models: Vec<Model>, effort: Effort, approval: ApprovalMode) -> Self {
        let model = models.first().map(|model| model.id.clone()).unwrap_or_default();
        let chosen = Selected { model, effort };
        Self { models, confirmed: chosen.clone(), chosen, approval }
    }

    pub(super) fn approval(&self) -> ApprovalMode {
        self.approval
    }

    /// The id of the mode.
    pub(super) fn mode(&self) -> &'static str {
        self.approval.name()
    }

    /// Notes what answers from now on.
    pub(super) fn switched(&mut self, to: &ModelSwitched) {
        let is_it = |it: &&Model| match to.profile.as_str() {
            "" => it.choice.profile.is_empty() && it.engine == to.engine && it.model == to.model,
            profile => it.choice.profile == profile,
        };
        if let Some(found) = self.models.iter().find(is_it) {
            let id = found.id.clone();
            return self.goes_on_with(id);
        }
        // One that this list did not have, as it was chosen elsewhere.
        let choice = ModelChoice {
            profile: to.profile.clone(),
            engine: if to.profile.is_empty() { to.engine.clone() } else { String::new() },
            model: to.model.clone(),
            settings: Map::new(),
        };
        let (engine, model) = (to.engine.clone(), to.model.clone());
        let (id, name) = (format!("{engine}/{model}"), model_name(&engine, &model));
        let is_like = |it: &&Model| it.choice.profile == to.profile && it.engine == to.engine;
        let effort = self.models.iter().find(is_like).and_then(|it| it.effort.clone());
        self.models.push(Model { id: id.clone(), name, choice, engine, model, effort });
        self.goes_on_with(id);
    }

    fn goes_on_with(&mut self, model: String) {
        self.confirmed.model.clone_from(&model);
        self.chosen.model = model;
    }

    /// The conversation has made the choice. Which model that is, [`Self::switched`] knows.
    pub(super) fn made(&mut self, chosen: Chosen) {
        if let Chosen::Effort(effort) = chosen {
            self.confirmed.effort = effort;
        }
    }

    /// The conversation has refused the choice: what is shown is what it goes on with, unless the person has made
    /// another choice since.
    pub(super) fn refused(&mut self, refused: &Chosen) {
        let Self { chosen, confirmed, .. } = self;
        match refused {
            Chosen::Model(model) if *model == chosen.model => {
                chosen.model.clone_from(&confirmed.model)
            }
            Chosen::Effort(effort) if *effort == chosen.effort => {
                chosen.effort.clone_from(&confirmed.effort)
            }
            Chosen::Model(_) | Chosen::Effort(_) => {}
        }
    }

    /// How much the model that is shown reasons.
    fn effort(&self) -> Option<&str> {
        match &self.chosen.effort {
            Effort::Chosen(effort) => effort.as_deref(),
            Effort::Configured => {
                let model = self.models.iter().find(|it| it.id == self.chosen.model)?;
                model.effort.as_deref()
            }
        }
    }

    /// Chooses the value `value` of the option `id`.
    ///
    /// # Errors
    /// If there is none: for people.
    pub(super) fn set(&mut self, id: &str, value: &str) -> Result<Change, String> {
        match id {
            MODE => self.set_mode(value),
            MODEL => {
                let model = self.models.iter().find(|model| model.id == value);
                let model = model.ok_or_else(|| format!("there is no model {value:?}"))?;
                let (mut choice, id) = (model.choice.clone(), model.id.clone());
                if let Effort::Chosen(effort) = &self.chosen.effort {
                    choice.settings.insert(EFFORT_SETTING.to_owned(), json!(effort));
                }
                self.chosen.model.clone_from(&id);
                Ok(Change::Model(choice, Chosen::Model(id)))
            }
            EFFORT => {
                if value != DEFAULT_EFFORT && !self.efforts().contains(&value) {
                    return Err(format!("there is no effort {value:?}"));
                }
                let effort = (value != DEFAULT_EFFORT).then(|| value.to_owned());
                let settings = Map::from_iter([(EFFORT_SETTING.to_owned(), json!(effort))]);
                let choice = ModelChoice { settings, ..ModelChoice::default() };
                self.chosen.effort = Effort::Chosen(effort);
                Ok(Change::Model(choice, Chosen::Effort(self.chosen.effort.clone())))
            }
            _ => Err(format!("there is no option {id:?}")),
        }
    }

    /// Chooses the mode with this id.
    ///
    /// # Errors
    /// If there is none: for people.
    pub(super) fn set_mode(&mut self, id: &str) -> Result<Change, String> {
        let mode = MODES.into_iter().find(|mode| mode.name() == id);
        self.approval = mode.ok_or_else(|| format!("there is no mode {id:?}"))?;
        Ok(Change::Approval)
    }

    /// `configOptions`.
    pub(super) fn config(&self) -> Value {
        let mut options = vec![json!({
            "id": MODE,
            "name": "Tool calls",
            "description": "What happens to a tool call that no rule allows or denies",
            "category": "mode",
            "type": "select",
            "currentValue": self.mode(),
            "options": MODES.map(|mode| {
                let (name, description) = about(mode);
                json!({ "value": mode.name(), "name": name, "description": description })
            }),
        })];
        if !self.models.is_empty() {
            let model = |it: &Model| json!({ "value": it.id, "name": it.name });
            options.push(json!({
                "id": MODEL,
                "name": "Model",
                "category": "model",
                "type": "select",
                "currentValue": self.chosen.model,
                "options": self.models.iter().map(model).collect::<Vec<_>>(),
            }));
            options.push(self.effort_option());
        }
        Value::Array(options)
    }

    fn effort_option(&self) -> Value {
        let efforts = self.efforts();
        let efforts = efforts.iter().map(|word| json!({ "value": word, "name": word }));
        let default = json!({ "value": DEFAULT_EFFORT, "name": "As the provider chooses" });
        json!({
            "id": EFFORT,
            "name": "Reasoning effort",
            "category": "thought_level",
            "type": "select",
            "currentValue": self.effort().unwrap_or(DEFAULT_EFFORT),
            "options": std::iter::once(default).chain(efforts).collect::<Vec<_>>(),
        })
    }

    /// The words that can be chosen: a configured one is among them.
    fn efforts(&self) -> Vec<&str> {
        let own = self.effort().filter(|own| !EFFORTS.contains(own));
        EFFORTS.into_iter().chain(own).collect()
    }

    /// `modes`.
    pub(super) fn modes(&self) -> Value {
        let modes = MODES.map(|mode| {
            let (name, description) = about(mode);
            json!({ "id": mode.name(), "name": name, "description": description })
        });
        json!({ "currentModeId": self.mode(), "availableModes": modes })
    }
}

/// The name of a model for people.
pub(crate) fn model_name(engine: &str, model: &str) -> String {
    if model.is_empty() { engine.to_owned() } else { format!("{model} ({engine})") }
}

const MODES: [ApprovalMode; 3] = [ApprovalMode::Ask, ApprovalMode::Auto, ApprovalMode::Deny];

fn about(mode: ApprovalMode) -> (&'static str, &'static str) {
    match mode {
        ApprovalMode::Ask => ("Ask", "Asks before each tool call"),
        ApprovalMode::Auto => ("Auto", "Runs tool calls without asking"),
        ApprovalMode::Deny => ("Deny", "Makes no tool calls but those that a rule allows"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        let model = |id: &str, profile: &str, model: &str| Model {
            id: id.to_owned(),
            name: id.to_owned(),
            choice: ModelChoice { profile: profile.to_owned(), ..ModelChoice::default() },
            engine: "openai".to_owned(),
            model: model.to_owned(),
            effort: (profile == "fast").then(|| "minimal".to_owned()),
        };
        let models = vec![model("a", "", "gpt"), model("b", "fast", "mini")];
        Options::new(models, Effort::Configured, ApprovalMode::Ask)
    }

    fn chosen(options: &Options, id: &str) -> Value {
        let config = options.config();
        let option = config.as_array().expect("a list").iter().find(|it| it["id"] == id).expect(id);
        let values = option["options"].as_array().expect("a list");
        assert!(values.iter().any(|it| it["value"] == option["currentValue"]), "{option}");
        option["currentValue"].clone()
    }

    /// What the conversation is asked for.
    fn asked_for(set: Result<Change, String>) -> ModelChoice {
        match set {
            Ok(Change::Model(choice, _)) => choice,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_refused_is_not_shown_any_more() {
        let mut options = options();
        let set = |options: &mut Options, id: &str, value: &str| match options.set(id, value) {
            Ok(Change::Model(_, chosen)) => chosen,
            other => panic!("{other:?}"),
        };
        let made = set(&mut options, EFFORT, "high");
        options.made(made);
        let (model, effort) = (set(&mut options, MODEL, "b"), set(&mut options, EFFORT, "low"));
        assert_eq!((chosen(&options, MODEL), chosen(&options, EFFORT)), (json!("b"), json!("low")));
        options.refused(&model);
        assert_eq!((chosen(&options, MODEL), chosen(&options, EFFORT)), (json!("a"), json!("low")));
        // One that is made later stands.
        let later = set(&mut options, EFFORT, "medium");
        options.refused(&effort);
        assert_eq!(chosen(&options, EFFORT), "medium");
        options.refused(&later);
        assert_eq!(chosen(&options, EFFORT), "high");
    }

    #[test]
    fn a_model_takes_the_effort_with_it() {
        let mut options = options();
        let set = asked_for(options.set(EFFORT, "high"));
        let settings = Map::from_iter([(EFFORT_SETTING.to_owned(), json!("high"))]);
        assert_eq!(set, ModelChoice { settings: settings.clone(), ..Default::default() });
        let set = asked_for(options.set(MODEL, "b"));
        let expected = ModelChoice { profile: "fast".to_owned(), settings, ..Default::default() };
        assert_eq!(set, expected);
        assert_eq!(
            (chosen(&options, MODEL), chosen(&options, EFFORT)),
            (json!("b"), json!("high"))
        );
        let set = asked_for(options.set(EFFORT, DEFAULT_EFFORT));
        let settings = Map::from_iter([(EFFORT_SETTING.to_owned(), Value::Null)]);
        assert_eq!(set, ModelChoice { settings, ..Default::default() });
    }

    #[test]
    fn an_effort_that_nobody_has_chosen_is_that_of_the_model() {
        let mut options = options();
        assert_eq!(chosen(&options, EFFORT), DEFAULT_EFFORT);
        let set = asked_for(options.set(MODEL, "b"));
        let expected = ModelChoice { profile: "fast".to_owned(), ..Default::default() };
        assert_eq!(set, expected);
        assert_eq!(chosen(&options, EFFORT), "minimal");
        // That it is left to the provider can be chosen, too, and goes along.
        options.set(EFFORT, DEFAULT_EFFORT).expect("it can be chosen");
        assert_eq!(chosen(&options, EFFORT), DEFAULT_EFFORT);
        let set = asked_for(options.set(MODEL, "b"));
        let settings = Map::from_iter([(EFFORT_SETTING.to_owned(), Value::Null)]);
        let expected = ModelChoice { profile: "fast".to_owned(), settings, ..Default::default() };
        assert_eq!(set, expected);
    }

    #[test]
    fn what_answers_is_chosen_even_if_it_was_not_offered() {
        let mut options = options();
        let switched = |profile: &str, model: &str| ModelSwitched {
            profile: profile.to_owned(),
            engine: "openai".to_owned(),
            model: model.to_owned(),
            host: String::new(),
        };
        options.switched(&switched("fast", "mini"));
        assert_eq!(chosen(&options, MODEL), "b");
        options.switched(&switched("", "gpt"));
        assert_eq!(chosen(&options, MODEL), "a");
        options.switched(&switched("", "other"));
        assert_eq!(chosen(&options, MODEL), "openai/other");
    }

    #[test]
    fn a_mode_is_an_option_and_what_there_is_not_is_refused() {
        let mut options = options();
        assert_eq!(options.set(MODE, "auto"), Ok(Change::Approval));
        assert_eq!(options.approval(), ApprovalMode::Auto);
        assert_eq!(options.modes()["currentModeId"], "auto");
        for (id, value) in [(MODE, "yolo"), (MODEL, "c"), (EFFORT, "huge"), ("x", "y")] {
            assert!(options.set(id, value).is_err(), "{id} {value}");
        }
        assert_eq!((chosen(&options, MODE), chosen(&options, MODEL)), (json!("auto"), json!("a")));
    }
}
