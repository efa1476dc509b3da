// Package wire is the protocol between the collector of a pod and the archiver: a stream of records, each acknowledged once it
// is durable, and sent only when there is room for it.
//
// In: on the collector's end chunks, gaps and lists; on the archiver's end messages of any peer, and an Archive that keeps
// records. Out: records of the pod that the caller's token names, within all bounds; offsets that were acknowledged.
//
// It must never take memory that a peer asks for without a bound, for one stream and for all of a namespace, and never believe a
// message about whose it is.
package wire

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// Version is the highest version that this package speaks. It speaks each one from 1 on.
const Version = 1

// The bounds that both ends keep.
const (
	MaxMessage  = pack.MaxRun + 16<<10 // bytes of a message
	MaxNumbers  = 1 << 10              // files with a number on a stream
	MaxRows     = 1 << 14              // files of a pod: of a Resume and of a list
	MaxParts    = 64                   // parts of a list
	NarrowRoom  = 32 << 10             // room of a stream whose collector is not behind
	WideRoom    = 512 << 10            // room of one whose collector is
	maxHello    = 1 << 10              // bytes of the message that comes before any room
	messageCost = 64                   // bytes that each message takes of the room beside its length
	chunkExtra  = 128                  // bytes at most that a chunk takes of the room beside its data
	partFiles   = 512                  // files in a part of a list that is sent: it fits into the narrow room
)

// The common names of the certificates by which archivers take their callers for the server for portals and for the operator.
const (
	NameOfServer   = "heliostat-server"
	NameOfOperator = "heliostat-operator"
)

// ErrInvalid is wrapped by each error about a message that breaks a bound or the order of messages.
var ErrInvalid = errors.New("invalid message")

// Acked is up to where a file was acknowledged. pack.MaxOffset is the end of a file of which no more is expected.
type Acked struct {
	ID         pack.FileID
	Generation uint32
	Offset     int64
	// IsClosed: a list had the size of the file. Only what is resumed has it.
	IsClosed bool
}

// judgedFor is how long a stream lasts on one judgement of its token.
const judgedFor = 15 * time.Minute

// ServerOptions are for the archiver's end. Small buffers keep the memory of thousands of streams small.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxConcurrentStreams(8),
		grpc.ReadBufferSize(4 << 10), grpc.WriteBufferSize(4 << 10),
		grpc.InitialWindowSize(64 << 10), grpc.InitialConnWindowSize(64 << 10),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: time.Minute, Time: 30 * time.Second, Timeout: 20 * time.Second,
			// The next stream is judged again: a stolen token is of no use for long after the end of its pod.
			MaxConnectionAge: judgedFor, MaxConnectionAgeGrace: 10 * time.Second,
		}),
	}
}

// DialOptions are for the collector's end, beside its credentials.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage)),
		grpc.WithReadBufferSize(4 << 10), grpc.WithWriteBufferSize(4 << 10),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
	}
}

// number reads a number of a message that must be at most so much.
func number(what string, value, most uint64) (int64, error) {
	if value > most {
		return 0, fmt.Errorf("%s %d, at most %d fits: %w", what, value, most, ErrInvalid)
	}
	return int64(value), nil
}

// span reads an offset and how many bytes follow it, which end at most at pack.MaxOffset.
func span(what string, offset, length uint64) (begin, size int64, err error) {
	if begin, err = number("offset of "+what, offset, pack.MaxOffset); err != nil {
		return 0, 0, err
	}
	size, err = number("length of "+what, length, pack.MaxOffset-offset)
	return begin, size, err
}

// fileID reads the ID of a file.
func fileID(id []byte) (pack.FileID, error) {
	if len(id) != len(pack.FileID{}) {
		return pack.FileID{}, fmt.Errorf("an ID of %d bytes: %w", len(id), ErrInvalid)
	}
	return pack.FileID(id), nil
}

// decodeFile reads a file of a pod.
func decodeFile(m *pb.File, pod pack.UID) (pack.File, error) {
	id, err := fileID(m.GetId())
	if err != nil {
		return pack.File{}, err
	}
	file := pack.File{FileKey: pack.FileKey{Pod: pod, ID: id, Generation: m.GetGeneration()}, Path: string(m.GetPath())}
	if m.GetKind() > uint32(pack.Dashboard) {
		return pack.File{}, fmt.Errorf("kind %d of a file: %w", m.GetKind(), ErrInvalid)
	}
	file.Kind = pack.Kind(m.GetKind())
	if err := pack.CheckPath(file.Path); err != nil {
		return pack.File{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return file, nil
}

func encodeFile(place int, file pack.File) *pb.File {
	return &pb.File{
		Number: uint32(place), Id: file.ID[:], Generation: file.Generation, Kind: uint32(file.Kind), Path: []byte(file.Path),
	}
}

// decodeChunk reads bytes of a file.
func decodeChunk(m *pb.Chunk, file pack.File) (*pack.Chunk, error) {
	if len(m.GetData()) == 0 || len(m.GetData()) > pack.MaxRun {
		return nil, fmt.Errorf("a chunk of %d bytes: %w", len(m.GetData()), ErrInvalid)
	}
	offset, _, err := span("a chunk", m.GetOffset(), uint64(len(m.GetData())))
	if err != nil {
		return nil, err
	}
	at, err := number("time of a chunk", m.GetTime(), pack.MaxOffset)
	if err != nil {
		return nil, err
	}
	return &pack.Chunk{File: file, Offset: offset, At: at, Data: m.GetData()}, nil
}

// decodeGap reads a gap. A collector can only claim the reasons that it finds out itself.
func decodeGap(m *pb.Gap, file pack.File) (*pack.Hole, error) {
	offset, length, err := span("a gap", m.GetOffset(), m.GetLength())
	if err != nil {
		return nil, err
	}
	at, err := number("time of a gap", m.GetTime(), pack.MaxOffset)
	if err != nil {
		return nil, err
	}
	if reason := m.GetReason(); reason != uint32(pack.RotatedAway) && reason != uint32(pack.Unreadable) {
		return nil, fmt.Errorf("reason %d of a collector's gap: %w", reason, ErrInvalid)
	}
	return &pack.Hole{File: file, Offset: offset, Length: length, At: at, Reason: pack.Reason(m.GetReason())}, nil
}

// rows reads lists whose entries belong together by their place: IDs, generations and up to two numbers.
func rows(ids []byte, generations []uint32, numbers ...[]uint64) ([]pack.Listed, error) {
	count := len(generations)
	if count > pack.MaxListed || len(ids) != count*len(pack.FileID{}) {
		return nil, fmt.Errorf("%d files with %d bytes of IDs: %w", count, len(ids), ErrInvalid)
	}
	for _, column := range numbers {
		if len(column) != count {
			return nil, fmt.Errorf("%d numbers for %d files: %w", len(column), count, ErrInvalid)
		}
		for _, value := range column {
			if _, err := number("offset of a file", value, pack.MaxOffset); err != nil {
				return nil, err
			}
		}
	}
	all := make([]pack.Listed, count)
	for i := range all {
		all[i] = pack.Listed{ID: pack.FileID(ids[16*i:]), Generation: generations[i], Acked: int64(numbers[0][i])}
		if len(numbers) > 1 {
			all[i].Size = int64(numbers[1][i])
		}
	}
	return all, nil
}

// decodeList reads a part of a list.
func decodeList(m *pb.List, pod pack.UID) (*pack.Part, error) {
	if m.GetParts() > MaxParts || m.GetPart() >= max(m.GetParts(), 1) {
		return nil, fmt.Errorf("part %d of %d of a list: %w", m.GetPart(), m.GetParts(), ErrInvalid)
	}
	files, err := rows(m.GetIds(), m.GetGenerations(), m.GetAcked(), m.GetSizes())
	if err != nil {
		return nil, err
	}
	return &pack.Part{Pod: pod, Number: int(m.GetPart()), Of: int(m.GetParts()), Files: files}, nil
}

func encodeList(part, parts int, files []pack.Listed) *pb.List {
	m := &pb.List{Part: uint32(part), Parts: uint32(parts)}
	for _, file := range files {
		m.Ids = append(m.Ids, file.ID[:]...)
		m.Generations = append(m.Generations, file.Generation)
		m.Sizes, m.Acked = append(m.Sizes, uint64(file.Size)), append(m.Acked, uint64(file.Acked))
	}
	return m
}

// decodeResume reads a part of what an archiver has.
func decodeResume(m *pb.Resume) ([]Acked, error) {
	files, err := rows(m.GetIds(), m.GetGenerations(), m.GetAcked())
	if err != nil {
		return nil, err
	}
	if len(m.GetClosed()) != len(files) {
		return nil, fmt.Errorf("%d files, and %d of them closed or not: %w", len(files), len(m.GetClosed()), ErrInvalid)
	}
	all := make([]Acked, len(files))
	for i, file := range files {
		all[i] = Acked{ID: file.ID, Generation: file.Generation, Offset: file.Acked, IsClosed: m.GetClosed()[i] == 1}
	}
	return all, nil
}

func encodeResume(version uint32, all []Acked, isLast bool) *pb.Resume {
	m := &pb.Resume{Version: version, Last: isLast}
	for _, file := range all {
		m.Ids = append(m.Ids, file.ID[:]...)
		m.Generations, m.Acked = append(m.Generations, file.Generation), append(m.Acked, uint64(file.Offset))
		closed := byte(0)
		if file.IsClosed {
			closed = 1
		}
		m.Closed = append(m.Closed, closed)
	}
	return m
}
