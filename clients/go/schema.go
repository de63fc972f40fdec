package duologue

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// SchemaOf returns the JSON Schema of a type, as encoding/json writes it. A field without omitempty or omitzero is
// required; a tag `description:"…"` describes a field, and `enum:"a,b"` names its values.
func SchemaOf(t reflect.Type) (map[string]any, error) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}, nil
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{}, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return SchemaOf(t.Elem())
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}, nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.Interface:
		return map[string]any{}, nil
	case reflect.Slice, reflect.Array:
		items, err := SchemaOf(t.Elem())
		return map[string]any{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := SchemaOf(t.Elem())
		return map[string]any{"type": "object", "additionalProperties": values}, err
	case reflect.Struct:
		return schemaOfStruct(t)
	default:
		return nil, fmt.Errorf("a %s has no JSON Schema", t)
	}
}

func schemaOfStruct(t reflect.Type) (map[string]any, error) {
	properties, required := map[string]any{}, []string{}
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" || field.Anonymous && name == "" || len(field.Index) > 1 && hides(t, field) {
			continue
		}
		if name == "" {
			name = field.Name
		}
		schema, err := SchemaOf(field.Type)
		if err != nil {
			return nil, fmt.Errorf("the field %s: %w", field.Name, err)
		}
		if text := field.Tag.Get("description"); text != "" {
			schema["description"] = text
		}
		if values := field.Tag.Get("enum"); values != "" {
			schema["enum"] = strings.Split(values, ",")
		}
		properties[name] = schema
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}, nil
}

// hides reports whether a field is of an embedded struct that has a name in JSON, and so is a member of its own.
func hides(t reflect.Type, field reflect.StructField) bool {
	for at := 1; at < len(field.Index); at++ {
		if name, _, _ := strings.Cut(t.FieldByIndex(field.Index[:at]).Tag.Get("json"), ","); name != "" {
			return true
		}
	}
	return false
}
