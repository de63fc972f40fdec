//! Files of YAML.

use super::Format;
use crate::command_file::cost::{Cost, RecordsCost};
use crate::command_file::outside::Contents;
use crate::command_file::records::FoundRecords;
use crate::yaml;
use serde::Deserialize;
use serde_json::Value;

impl Contents {
    /// The only map in a file of YAML, with the times in it; `None` for other files.
    pub(in crate::command_file) fn yaml_object(&self) -> Option<Result<yaml::data::Data, String>> {
        let Format::Yaml = self.format() else { return None };
        let map = self.yaml_data::<Cost>(|Cost(cost)| cost).and_then(|data| {
            let is_map = matches!(data, yaml::data::Data::Map(_) | yaml::data::Data::IntMap(_));
            if is_map { Ok(data) } else { Err(format!("{} does not hold a map", self.called())) }
        });
        Some(map)
    }

    /// The content of a YAML file, if there is room for it.
    fn yaml_data<C: for<'de> Deserialize<'de>>(
        &self,
        cost: impl FnOnce(C) -> usize,
    ) -> Result<yaml::data::Data, String> {
        let cost = cost(self.read_yaml()?);
        self.fits(self.room().take(cost))?;
        yaml::data::read(self.unmarked()?, yaml::data::Reader::V3)
            .map_err(|why| format!("{} is not valid YAML: {why}", self.called()))
    }

    pub(super) fn yaml(&self) -> Result<Value, String> {
        let Cost(cost) = self.read_yaml()?;
        self.fits(self.room().take(cost))?;
        self.read_yaml()
    }

    pub(super) fn yaml_records(&self) -> Result<FoundRecords, String> {
        let data = self.yaml_data::<RecordsCost>(|RecordsCost(cost)| cost)?;
        Ok(FoundRecords::of_yaml(data))
    }

    pub(super) fn read_yaml<T: for<'de> Deserialize<'de>>(&self) -> Result<T, String> {
        yaml::deserialize(self.unmarked()?).map_err(|error| {
            let place = error.line.map(|line| format!(": line {line}")).unwrap_or_default();
            format!("{}{place} {}", self.called(), error.predicate())
        })
    }
}
