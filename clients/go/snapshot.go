package duologue

import (
	"context"
	"encoding/json"
	"strconv"

	"google.golang.org/protobuf/proto"
)

// A Snapshot is the conversation, or a part of it.
type Snapshot struct {
	// Ordinal is that of the last event of the session.
	Ordinal uint64
	// Entities are oldest first.
	Entities []Entity
}

// An Entity is a message, a tool call or a result.
type Entity struct {
	Kind, ID                         string
	CreatedOrdinal, LastEventOrdinal uint64
	// Tombstone: it is gone from the conversation.
	Tombstone bool
	// Type is the full name of the payload's type, Raw the payload as JSON.
	Type string
	Raw  json.RawMessage
}

// Payload returns the message, as *messages.ChatMessageEntity; nil if this version of the package does not know its type.
func (e *Entity) Payload() proto.Message { return readPayload(e.Type, e.Raw) }

// Part says which part of a conversation is asked for. The zero value is all of it.
type Part struct {
	// Since: what was changed after this event.
	Since uint64
	// Limit: at most so many entities, those that were created last.
	Limit int
	// Before: what was created before this event.
	Before uint64
}

// Snapshot returns the conversation, or a part of it.
func (c *Client) Snapshot(ctx context.Context, part Part) (*Snapshot, error) {
	raw, err := c.Request(ctx, map[string]any{"snapshot": map[string]any{
		"sinceOrdinal":  strconv.FormatUint(part.Since, 10),
		"limit":         part.Limit,
		"beforeOrdinal": strconv.FormatUint(part.Before, 10),
	}})
	if err != nil {
		return nil, err
	}
	return readSnapshot(raw)
}

// isApart reports whether the entity comes after the others of a page, and does not count for its limit.
func (e *Entity) isApart() bool { return e.Kind == "Compaction" || e.Kind == "ToolApproval" }

// History returns all messages, tool calls and results, oldest first, and then compactions and calls that wait for
// approval. They are asked for in pages.
func (c *Client) History(ctx context.Context) ([]Entity, error) {
	var entities, apart []Entity
	// Several pages may have one that is apart.
	known := map[[2]string]bool{}
	part := Part{Limit: c.options.PageEntities}
	for {
		page, err := c.Snapshot(ctx, part)
		if err != nil {
			return nil, err
		}
		var counted, added []Entity
		for _, entity := range page.Entities {
			key := [2]string{entity.Kind, entity.ID}
			switch {
			case !entity.isApart():
				counted = append(counted, entity)
			case !known[key]:
				known[key] = true
				added = append(added, entity)
			}
		}
		entities, apart = append(counted, entities...), append(added, apart...)
		if len(counted) < part.Limit || counted[0].CreatedOrdinal == 0 {
			return append(entities, apart...), nil
		}
		part.Before = counted[0].CreatedOrdinal
	}
}

func readSnapshot(raw json.RawMessage) (*Snapshot, error) {
	var read struct {
		SnapshotOrdinal uint64 `json:"snapshotOrdinal,string"`
		Entities        []struct {
			Kind             string          `json:"kind"`
			ID               string          `json:"id"`
			CreatedOrdinal   uint64          `json:"createdOrdinal,string"`
			LastEventOrdinal uint64          `json:"lastEventOrdinal,string"`
			Tombstone        bool            `json:"tombstone"`
			Payload          json.RawMessage `json:"payload"`
		} `json:"entities"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &read); err != nil {
			return nil, err
		}
	}
	snapshot := &Snapshot{Ordinal: read.SnapshotOrdinal}
	for _, e := range read.Entities {
		snapshot.Entities = append(snapshot.Entities, Entity{
			Kind: e.Kind, ID: e.ID, CreatedOrdinal: e.CreatedOrdinal, LastEventOrdinal: e.LastEventOrdinal,
			Tombstone: e.Tombstone, Type: typeOf(e.Payload), Raw: e.Payload,
		})
	}
	return snapshot, nil
}
