package stream

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// recordHeaderBytes is the size of a stored record's header: a time in milliseconds and the flags.
const recordHeaderBytes = 8 + 1

// The flags of a stored record.
const (
	flagNewExists = 1 << iota // the item exists after the change
	flagOldExists             // the item existed before the change
	flagExpired               // the item was deleted because its time to live had ended
)

// encode returns the stream record of a change, encoded for the database file. expired reports
// whether the store deleted the item because its time to live had ended.
func encode(a *storage.Change, expired bool, now time.Time) []byte {
	flags := byte(0)
	view := a.Table.StreamSpecification.StreamViewType
	var keys, before, after []byte
	if a.New != nil {
		flags |= flagNewExists
		if strings.HasPrefix(view, "NEW") {
			after = a.Encoded
		}
	}
	if a.Old != nil {
		flags |= flagOldExists
		if strings.HasSuffix(view, "OLD_IMAGES") || view == "OLD_IMAGE" {
			before = a.OldStored
		}
	}
	if expired {
		flags |= flagExpired
	}
	// An image contains the key, so only a record without an image needs the key.
	if before == nil && after == nil {
		item := a.New
		if item == nil {
			item = a.Old
		}
		keys = a.Table.ExtractKey(item).AppendJSON(nil)
	}
	b := make([]byte, 0, recordHeaderBytes+12+len(keys)+len(after)+len(before))
	b = append(binary.BigEndian.AppendUint64(b, uint64(now.UnixMilli())), flags)
	// Each part begins with its length (4 bytes). The length of an absent part is 0.
	for _, part := range [][]byte{keys, after, before} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	return b
}

// recordTime returns the time of a stored record as a Unix time in milliseconds.
func recordTime(stored []byte) int64 { return int64(binary.BigEndian.Uint64(stored)) }

// errDamaged means that a stored record is shorter than its format requires.
var errDamaged = errors.New("a stream record is damaged")

// appendRecordJSON adds a stored record to the list of records in a response. number is the number
// of the record in the stream.
func (m *stream) appendRecordJSON(o *wire.ObjectWriter, number uint64, stored []byte) error {
	if len(stored) < recordHeaderBytes {
		return errDamaged
	}
	created, flags := recordTime(stored), stored[recordHeaderBytes-1]
	stored = stored[recordHeaderBytes:]
	var parts [3][]byte
	for i := range parts {
		if len(stored) < 4 || len(stored)-4 < int(binary.BigEndian.Uint32(stored)) {
			return errDamaged
		}
		end := 4 + binary.BigEndian.Uint32(stored)
		parts[i], stored = stored[4:end], stored[end:]
	}
	keys, err := m.itemKey(parts)
	if err != nil {
		return err
	}
	size := keys.Size()
	image := func(name string, part []byte) {
		if len(part) > 0 {
			n, json := storage.SplitItem(part)
			o.Raw(name, json)
			size += n
		}
	}
	o.Open()
	o.Text("awsRegion", schema.Region)
	o.Nested("dynamodb", func() {
		o.Int("ApproximateCreationDateTime", int(created/1000))
		o.Item("Keys", keys)
		image("NewImage", parts[1])
		image("OldImage", parts[2])
		o.Text("SequenceNumber", fmt.Sprintf(sequenceNumberFormat, number))
		o.Int("SizeBytes", size)
		o.Text("StreamViewType", m.ViewType)
	})
	id := uuid.NewSHA1(uuid.NameSpaceURL, append([]byte(m.ARN), recordKey(number)...))
	o.Text("eventID", hex.EncodeToString(id[:]))
	o.Text("eventName", map[byte]string{flagNewExists: "INSERT", flagNewExists | flagOldExists: "MODIFY", flagOldExists: "REMOVE"}[flags&(flagNewExists|flagOldExists)])
	o.Text("eventSource", "aws:dynamodb")
	o.Text("eventVersion", "1.1")
	if flags&flagExpired != 0 {
		o.Nested("userIdentity", func() {
			o.Text("PrincipalId", "dynamodb.amazonaws.com")
			o.Text("Type", "Service")
		})
	}
	o.Close()
	return nil
}

// itemKey returns the key of the changed item. parts contains the three fields of the stored
// record: the key, the new image and the old image.
func (m *stream) itemKey(parts [3][]byte) (attr.Item, error) {
	json := parts[0]
	for _, image := range parts[1:] {
		if len(json) == 0 && len(image) > 0 {
			_, json = storage.SplitItem(image)
		}
	}
	names := map[string]bool{}
	for _, k := range m.KeySchema {
		names[k.AttributeName] = true
	}
	return attr.ParseAttributes(json, names)
}
