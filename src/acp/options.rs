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
    /// Id of the model.
    model: String,
    effort: Effort,
    approval: ApprovalMode,
}

/// A change that the person wants.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// Another model, or other settings.
    Model(ModelChoice),
    Approval,
}

impl Options {
    /// The options with these models, the first of which answers.
    pub(super) fn new(models: Vec<Model>, effort: Effort, approval: ApprovalMode) -> Self {
        let model = models.first().map(|model| model.id.clone()).unwrap_or_default();
        Self { models, model, effort, approval }
    }

    pub(super) fn approval(&self) -> ApprovalMode {
        self.approval
    }

    /// The id of the mode.
    pub(super) fn mode(&self) -> &'static str {
        mode_id(self.approval)
    }

    /// Notes what answers from now on.
    pub(super) fn switched(&mut self, to: &ModelSwitched) {
        let is_it = |it: &&Model| match to.profile.as_str() {
            "" => it.choice.profile.is_empty() && it.engine == to.engine && it.model == to.model,
            profile => it.choice.profile == profile,
        };
        if let Some(found) = self.models.iter().find(is_it) {
            self.model.clone_from(&found.id);
            return;
        }
        // One that this list did not have, as it was chosen elsewhere.
        let choice = ModelChoice {
            profile: to.profile.clone(),
            engine: if to.profile.is_empty() { to.engine.clone() } else { String::new() },
            model: to.model.clone(),
            settings: Map::new(),
        };
        let (engine, model) = (to.engine.clone(), to.model.clone());
        self.model = format!("{engine}/{model}");
        let (id, name) = (self.model.clone(), model_name(&engine, &model));
        let is_like = |it: &&Model| it.choice.profile == to.profile && it.engine == to.engine;
        let effort = self.models.iter().find(is_like).and_then(|it| it.effort.clone());
        self.models.push(Model { id, name, choice, engine, model, effort });
    }

    /// How much the model that is shown reasons.
    fn effort(&self) -> Option<&str> {
        match &self.effort {
            Effort::Chosen(effort) => effort.as_deref(),
            Effort::Configured => {
                let model = self.models.iter().find(|it| it.id == self.model)?;
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
                self.model = value.to_owned();
                let mut choice = model.choice.clone();
                if let Effort::Chosen(effort) = &self.effort {
                    choice.settings.insert(EFFORT_SETTING.to_owned(), json!(effort));
                }
                Ok(Change::Model(choice))
            }
            EFFORT => {
                if value != DEFAULT_EFFORT && !self.efforts().contains(&value) {
                    return Err(format!("there is no effort {value:?}"));
                }
                let effort = (value != DEFAULT_EFFORT).then(|| value.to_owned());
                let settings = Map::from_iter([(EFFORT_SETTING.to_owned(), json!(effort))]);
                self.effort = Effort::Chosen(effort);
                Ok(Change::Model(ModelChoice { settings, ..ModelChoice::default() }))
            }
            _ => Err(format!("there is no option {id:?}")),
        }
    }

    /// Chooses the mode with this id.
    ///
    /// # Errors
    /// If there is none: for people.
    pub(super) fn set_mode(&mut self, id: &str) -> Result<Change, String> {
        let mode = MODES.into_iter().find(|mode| mode_id(*mode) == id);
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
                json!({ "value": mode_id(mode), "name": name, "description": description })
            }),
        })];
        if !self.models.is_empty() {
            let model = |it: &Model| json!({ "value": it.id, "name": it.name });
            options.push(json!({
                "id": MODEL,
                "name": "Model",
                "category": "model",
                "type": "select",
                "currentValue": self.model,
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
            json!({ "id": mode_id(mode), "name": name, "description": description })
        });
        json!({ "currentModeId": self.mode(), "availableModes": modes })
    }
}

/// The name of a model for people.
pub(crate) fn model_name(engine: &str, model: &str) -> String {
    if model.is_empty() { engine.to_owned() } else { format!("{model} ({engine})") }
}

const MODES: [ApprovalMode; 3] = [ApprovalMode::Ask, ApprovalMode::Auto, ApprovalMode::Deny];

fn mode_id(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Ask => "ask",
        ApprovalMode::Auto => "auto",
        ApprovalMode::Deny => "deny",
    }
}

fn about(mode: ApprovalMode) -> (&'static str, &'static str) {
    match mode {
        ApprovalMode::Ask => ("Ask", "Asks before each tool call"),
        ApprovalMode::Auto => ("Auto", "Runs tool calls without asking"),
        ApprovalMode::Deny => ("Deny", "Makes no tool calls"),
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

    #[test]
    fn a_model_takes_the_effort_with_it() {
        let mut options = options();
        let set = options.set(EFFORT, "high");
        let settings = Map::from_iter([(EFFORT_SETTING.to_owned(), json!("high"))]);
        assert_eq!(
            set,
            Ok(Change::Model(ModelChoice { settings: settings.clone(), ..Default::default() }))
        );
        let set = options.set(MODEL, "b");
        let expected = ModelChoice { profile: "fast".to_owned(), settings, ..Default::default() };
        assert_eq!(set, Ok(Change::Model(expected)));
        assert_eq!(
            (chosen(&options, MODEL), chosen(&options, EFFORT)),
            (json!("b"), json!("high"))
        );
        let set = options.set(EFFORT, DEFAULT_EFFORT);
        let settings = Map::from_iter([(EFFORT_SETTING.to_owned(), Value::Null)]);
        assert_eq!(set, Ok(Change::Model(ModelChoice { settings, ..Default::default() })));
    }

    #[test]
    fn an_effort_that_nobody_has_chosen_is_that_of_the_model() {
        let mut options = options();
        assert_eq!(chosen(&options, EFFORT), DEFAULT_EFFORT);
        let set = options.set(MODEL, "b");
        let expected = ModelChoice { profile: "fast".to_owned(), ..Default::default() };
        assert_eq!(set, Ok(Change::Model(expected)));
        assert_eq!(chosen(&options, EFFORT), "minimal");
        // That it is left to the provider can be chosen, too, and goes along.
        options.set(EFFORT, DEFAULT_EFFORT).expect("it can be chosen");
        assert_eq!(chosen(&options, EFFORT), DEFAULT_EFFORT);
        let set = options.set(MODEL, "b");
        let settings = Map::from_iter([(EFFORT_SETTING.to_owned(), Value::Null)]);
        let expected = ModelChoice { profile: "fast".to_owned(), settings, ..Default::default() };
        assert_eq!(set, Ok(Change::Model(expected)));
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
