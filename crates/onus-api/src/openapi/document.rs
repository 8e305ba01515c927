//! Routes in, an OpenAPI document out.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::Problem;

/// An API.
pub(super) struct Api {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) routes: Vec<Route>,
}

/// What can be asked at one path by one method.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// Its name in clients that are generated.
    pub(super) id: &'static str,
    pub(super) about: &'static str,
    /// Who may: a role, or everybody.
    pub(super) role: Option<&'static str>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Named>,
    pub(super) answer: Answer,
    /// Answers beside the one that is wanted, that are no problems.
    pub(super) also: &'static [(&'static str, &'static str)],
}

pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// `query` or `header`.
    pub(super) place: &'static str,
    pub(super) about: &'static str,
    pub(super) required: bool,
    pub(super) schema: Value,
}

/// A type of this crate, as a schema.
pub(super) type Named = fn(&mut SchemaGenerator) -> Schema;

pub(super) enum Answer {
    Json(Named),
    Text(&'static str),
    /// A document whose form is not told here.
    Any,
}

pub(super) fn of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    schemas.subschema_for::<T>()
}

/// A route that reads.
pub(super) fn get(
    path: &'static str,
    id: &'static str,
    about: &'static str,
    answer: Answer,
) -> Route {
    let parameters = Vec::new();
    Route { method: "get", path, id, about, role: None, parameters, body: None, answer, also: &[] }
}

/// A route that changes something.
pub(super) fn post(
    path: &'static str,
    id: &'static str,
    about: &'static str,
    body: Named,
    answer: Answer,
) -> Route {
    Route { method: "post", body: Some(body), ..get(path, id, about, answer) }
}

impl Route {
    pub(super) fn role(self, role: &'static str) -> Self {
        Self { role: Some(role), ..self }
    }

    pub(super) fn also(self, also: &'static [(&'static str, &'static str)]) -> Self {
        Self { also, ..self }
    }

    pub(super) fn text(self, name: &'static str, about: &'static str) -> Self {
        self.with(name, "query", about, false, json!({"type": "string"}))
    }

    pub(super) fn number(self, name: &'static str, about: &'static str) -> Self {
        self.with(name, "query", about, false, json!({"type": "integer", "minimum": 0}))
    }

    pub(super) fn with(
        mut self,
        name: &'static str,
        place: &'static str,
        about: &'static str,
        required: bool,
        schema: Value,
    ) -> Self {
        self.parameters.push(Parameter { name, place, about, required, schema });
        self
    }

    fn operation(&self, schemas: &mut SchemaGenerator) -> Value {
        let (kind, schema) = match &self.answer {
            Answer::Json(named) => ("application/json", named(schemas).to_value()),
            Answer::Text(kind) => (*kind, json!({"type": "string"})),
            Answer::Any => ("application/json", json!({"type": "object"})),
        };
        let mut content = Map::new();
        content.insert(kind.to_owned(), json!({ "schema": schema }));
        let mut responses = Map::new();
        responses.insert("200".into(), json!({"description": "It is done.", "content": content}));
        for (status, about) in self.also {
            responses.insert((*status).to_owned(), json!({ "description": about }));
        }
        let problem = of::<Problem>(schemas).to_value();
        let refused = json!({
            "description": "It is refused, with the reason.",
            "content": {Problem::MEDIA_TYPE: {"schema": problem}},
        });
        responses.insert("default".to_owned(), refused);
        let mut operation =
            json!({"operationId": self.id, "summary": self.about, "responses": responses});
        if let Some(role) = self.role {
            operation["description"] = format!("Needs the role {role}, or a higher one.").into();
            operation["security"] = json!([{"token": []}, {"certificate": []}]);
        }
        if !self.parameters.is_empty() {
            operation["parameters"] = self.parameters.iter().map(Parameter::value).collect();
        }
        if let Some(named) = self.body {
            let schema = named(schemas).to_value();
            operation["requestBody"] =
                json!({"required": true, "content": {"application/json": {"schema": schema}}});
        }
        operation
    }
}

impl Parameter {
    fn value(&self) -> Value {
        json!({
            "name": self.name,
            "in": self.place,
            "description": self.about,
            "required": self.required,
            "schema": self.schema,
        })
    }
}

impl Api {
    fn document(&self) -> String {
        let settings = SchemaSettings::draft2020_12()
            .with(|settings| settings.definitions_path = "/components/schemas".into());
        let mut schemas = settings.into_generator();
        let mut paths: Map<String, Value> = Map::new();
        for route in &self.routes {
            let path = paths.entry(route.path).or_insert_with(|| json!({}));
            path[route.method] = route.operation(&mut schemas);
        }
        let document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": self.title,
                "description": self.about,
                "version": env!("CARGO_PKG_VERSION"),
                "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
            },
            "paths": paths,
            "components": {
                "schemas": schemas.take_definitions(true),
                "securitySchemes": {
                    "token": {"type": "http", "scheme": "bearer"},
                    "certificate": {"type": "mutualTLS"},
                },
            },
        });
        serde_json::to_string_pretty(&document).expect("it is JSON") + "\n"
    }

    /// Compares the document with the file that is served, or writes the file.
    pub(super) fn check(&self, file: &str, served: &str) {
        let document = self.document();
        if std::env::var_os("UPDATE_TABLES").is_some() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi").join(file);
            std::fs::write(path, &document).expect("the file is written");
            return;
        }
        // Thousands of lines, of which a diff says more than an assertion would.
        assert!(served == document, "{file} says other than the types do: just tables, git diff");
    }
}
