package duologue

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// SchemaOf returns the JSON Schema of a type, as encoding/json reads it. A field without omitempty or omitzero is
// required; a tag `description:"…"` describes a field, and `enum:"a,b"` names its values, or those of its items. A type
// that is a part of itself is in $defs. One that reads text is a string, and one that reads JSON may be anything.
func SchemaOf(t reflect.Type) (map[string]any, error) {
	s := schemas{open: map[reflect.Type]bool{}, names: map[reflect.Type]string{}, definitions: map[string]any{}}
	schema, err := s.of(t)
	if err != nil || len(s.definitions) == 0 {
		return schema, err
	}
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	if name, ok := s.names[t]; ok {
		// Without a reference: the arguments of a tool have to be an object.
		schema = maps.Clone(s.definitions[name].(map[string]any))
	}
	schema["$defs"] = s.definitions
	return schema, nil
}

// schemas are those of a type and of what it has.
type schemas struct {
	open        map[reflect.Type]bool // whose schemas are being made
	names       map[reflect.Type]string
	definitions map[string]any
}

// of returns the schema of a type, or a reference to it.
func (s *schemas) of(t reflect.Type) (map[string]any, error) {
	if t.Name() == "" { // It can be a part of itself only through one that has a name.
		return s.made(t)
	}
	if s.open[t] && s.names[t] == "" {
		name := strings.Map(letter, t.Name())
		for at := 2; s.definitions[name] != nil; at++ {
			name = fmt.Sprintf("%s_%d", strings.Map(letter, t.Name()), at)
		}
		s.names[t], s.definitions[name] = name, map[string]any{}
	}
	if name, ok := s.names[t]; ok {
		return map[string]any{"$ref": "#/$defs/" + name}, nil
	}
	s.open[t] = true
	schema, err := s.made(t)
	delete(s.open, t)
	if name, ok := s.names[t]; ok {
		s.definitions[name] = schema
		return map[string]any{"$ref": "#/$defs/" + name}, err
	}
	return schema, err
}

// letter leaves letters as they are: the name of a generic type has others.
func letter(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return r
	}
	return '_'
}

func (s *schemas) made(t reflect.Type) (map[string]any, error) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}, nil
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{}, nil
	case reflect.TypeFor[json.Number]():
		return map[string]any{"type": "number"}, nil
	}
	switch {
	case reads(t, reflect.TypeFor[json.Unmarshaler]()) && !isWrittenAsText(t):
		return map[string]any{}, nil
	case reads(t, reflect.TypeFor[encoding.TextUnmarshaler]()):
		return map[string]any{"type": "string"}, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
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
		if t.Kind() == reflect.Slice && isByte(t.Elem()) {
			return map[string]any{"type": "string", "contentEncoding": "base64"}, nil
		}
		items, err := s.of(t.Elem())
		return map[string]any{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := s.of(t.Elem())
		return map[string]any{"type": "object", "additionalProperties": values}, err
	case reflect.Struct:
		return s.ofStruct(t)
	default:
		return nil, fmt.Errorf("a %s has no JSON Schema", t)
	}
}

// reads reports whether a value of the type, wherever it is, is read by its own method.
func reads(t, by reflect.Type) bool {
	return t.Kind() != reflect.Interface && (t.Implements(by) || reflect.PointerTo(t).Implements(by))
}

// isWrittenAsText reports whether the zero value of a type is a string in JSON, as that of a slog.Level, which reads both
// JSON and text.
func isWrittenAsText(t reflect.Type) (is bool) {
	defer func() { _ = recover() }() // Of a method of the type.
	raw, err := json.Marshal(reflect.New(t).Interface())
	return err == nil && raw[0] == '"'
}

// isByte reports whether a slice of the type is text in base64.
func isByte(t reflect.Type) bool {
	return t.Kind() == reflect.Uint8 && !reads(t, reflect.TypeFor[json.Unmarshaler]()) &&
		!reads(t, reflect.TypeFor[encoding.TextUnmarshaler]())
}

func (s *schemas) ofStruct(t reflect.Type) (map[string]any, error) {
	properties, required := map[string]any{}, []string{}
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		isSpread := name == "" && field.Anonymous && isStruct(field.Type)
		if !field.IsExported() || name == "-" || isSpread || len(field.Index) > 1 && hides(t, field) {
			continue
		}
		if name == "" {
			name = field.Name
		}
		schema, err := s.of(field.Type)
		if err != nil {
			return nil, fmt.Errorf("the field %s: %w", field.Name, err)
		}
		if isQuoted(field.Type, options) {
			schema = map[string]any{"type": "string"}
		}
		if text := field.Tag.Get("description"); text != "" {
			schema["description"] = text
		}
		if values := field.Tag.Get("enum"); values != "" {
			limit(schema, strings.Split(values, ","))
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

// isStruct reports whether the members of an embedded type are those of the struct that embeds it.
func isStruct(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

// isQuoted reports whether the value of a field is in a string, as the option says; it is one for simple types alone.
func isQuoted(t reflect.Type, options string) bool {
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	kind := t.Kind()
	isSimple := kind == reflect.String || kind >= reflect.Bool && kind <= reflect.Float64
	return isSimple && slices.Contains(strings.Split(options, ","), "string")
}

// limit names the values that the schema of a field has, or the items of it.
func limit(schema map[string]any, values []string) {
	for items, ok := schema["items"].(map[string]any); ok; items, ok = schema["items"].(map[string]any) {
		schema = items
	}
	all := make([]any, 0, len(values))
	for _, value := range values {
		if isText := schema["type"] == "string"; !isText && json.Valid([]byte(value)) {
			all = append(all, json.RawMessage(value)) // A number, or true.
		} else {
			all = append(all, value)
		}
	}
	schema["enum"] = all
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
