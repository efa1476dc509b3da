package client

import (
	"context"
	"errors"

	"github.com/heliostat-dev/heliostat/history/replica"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// reading is a file that is read.
type reading struct {
	client  *Client
	request *pb.ReadFileRequest
	take    func(Piece) error
	// at is the next byte, and left how many are still to be read; 0 is no bound where the request has none.
	at, left int64
}

var (
	// errTurn ends what one replica sends: another one may have the bytes that it says are missing.
	errTurn = errors.New("another replica is asked")
	// errFull is that as many bytes were read as were asked for.
	errFull = errors.New("enough was read")
)

// run asks replicas in turn. One that says that bytes are missing is believed once no other one has them, and a file ends where none of
// them has more.
func (r *reading) run(ctx context.Context) error {
	order := replica.Order(r.request.GetClusterUid(), r.client.addresses)
	for r.at < endless {
		began := r.at
		isOver, missing, err := r.round(ctx, order)
		switch {
		case err != nil:
			return err
		case r.at > began:
			order = append(order[1:], order[0])
		case len(missing) > 0:
			if err := r.skip(missing); err != nil {
				return err
			}
		case isOver:
			return nil
		}
	}
	return nil
}

// round asks replicas until one of them has more. Where none has, it is over; or each that answers may say that the next bytes are missing.
func (r *reading) round(ctx context.Context, order []string) (isOver bool, missing []Piece, err error) {
	began, hasAnswered := r.at, false
	var failure error
	for _, address := range order {
		gap, err := r.ask(ctx, address)
		switch {
		case errors.Is(err, errFull):
			r.at = endless // which ends it
			return true, nil, nil
		case isTakers(err) || err != nil && isFinal(ctx, err):
			return true, nil, causeOf(err)
		case r.at > began:
			return false, nil, nil
		case err != nil:
			failure = worse(failure, err)
			continue
		case gap != nil:
			missing = append(missing, *gap)
		}
		hasAnswered = true
	}
	if !hasAnswered {
		return true, nil, failure
	}
	return len(missing) == 0, missing, nil
}

// ask reads from one replica until it has no more, or says that the next bytes are missing: then it returns that range.
func (r *reading) ask(ctx context.Context, address string) (gap *Piece, err error) {
	request := &pb.ReadFileRequest{
		NamespaceUid: r.request.GetNamespaceUid(), ClusterUid: r.request.GetClusterUid(), PodUid: r.request.GetPodUid(), Id: r.request.GetId(),
		Offset: r.at, Limit: r.left,
	}
	err = r.client.pieces(ctx, address, request, func(piece Piece) error {
		switch {
		case piece.End() <= r.at:
			return nil
		case piece.Offset > r.at: // bytes before it are on their way
			return errTurn
		case piece.Missing != nil:
			gap = &piece
			return errTurn
		}
		return r.pass(piece)
	})
	if errors.Is(causeOf(err), errTurn) {
		err = nil
	}
	if errors.Is(causeOf(err), errFull) {
		err = errFull
	}
	return gap, err
}

// pass gives bytes on that were not given before.
func (r *reading) pass(piece Piece) error {
	data := piece.Data[r.at-piece.Offset:]
	if r.request.GetLimit() > 0 {
		data = data[:min(int64(len(data)), r.left)]
	}
	if err := r.take(Piece{Offset: r.at, Data: data}); err != nil {
		return err
	}
	r.at += int64(len(data))
	if r.request.GetLimit() > 0 {
		if r.left -= int64(len(data)); r.left == 0 {
			return errFull
		}
	}
	return nil
}

// skip goes behind the range that all replicas lack, as far as each of them says so.
func (r *reading) skip(missing []Piece) error {
	shortest := missing[0]
	for _, one := range missing[1:] {
		if one.End() < shortest.End() {
			shortest = one
		}
	}
	gap := &pb.Missing{Offset: r.at, Reason: shortest.Missing.GetReason()}
	if shortest.End() < endless {
		gap.Length = shortest.End() - r.at
	}
	if err := r.take(Piece{Offset: r.at, Missing: gap}); err != nil {
		return err
	}
	r.at = shortest.End()
	return nil
}

// isTakers reports whether an error is that of who takes pieces.
func isTakers(err error) bool {
	var taken *takeError
	return errors.As(err, &taken)
}

// causeOf returns the error of who takes pieces as it was.
func causeOf(err error) error {
	var taken *takeError
	if errors.As(err, &taken) {
		return taken.cause
	}
	return err
}
