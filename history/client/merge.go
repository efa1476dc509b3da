package client

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// merge returns one page of two that begin at the same place. It ends where the first of them ends that has a next one, as nothing is
// known of the other one's files behind that.
func merge(one, other *pb.ListFilesResponse) *pb.ListFilesResponse {
	end, next := endOf(one), one.GetNext()
	if last := endOf(other); end == nil || last != nil && order(last, end) < 0 {
		end, next = last, other.GetNext()
	}
	merged := &pb.ListFilesResponse{Next: next, ArchiveState: one.GetArchiveState(), Archived: max(one.GetArchived(), other.GetArchived())}
	all := append(slices.Clone(one.GetFiles()), other.GetFiles()...)
	slices.SortStableFunc(all, order)
	for _, file := range all {
		at := len(merged.Files) - 1
		switch {
		case end != nil && order(file, end) > 0:
			return merged
		case at >= 0 && order(merged.Files[at], file) == 0:
			merged.Files[at] = both(merged.Files[at], file)
		default:
			merged.Files = append(merged.Files, file)
		}
	}
	return merged
}

// endOf returns the last file of a page that has a next one; nil of the last page.
func endOf(page *pb.ListFilesResponse) *pb.ListFilesResponse_File {
	if page.GetNext() == "" || len(page.GetFiles()) == 0 {
		return nil
	}
	return page.GetFiles()[len(page.GetFiles())-1]
}

// order is that of the files of an archive in lists: by pod, path, time of birth, ID and generation.
func order(one, other *pb.ListFilesResponse_File) int {
	birth, generation := splitID(one.GetId())
	otherBirth, otherGeneration := splitID(other.GetId())
	return cmp.Or(
		strings.Compare(one.GetPodUid(), other.GetPodUid()), bytes.Compare(one.GetPath(), other.GetPath()),
		strings.Compare(birth[len(birth)/2:], otherBirth[len(otherBirth)/2:]), strings.Compare(birth, otherBirth),
		cmp.Compare(generation, otherGeneration),
	)
}

// splitID returns the ID of a file, and its generation.
func splitID(id string) (file string, generation uint64) {
	file, number, _ := strings.Cut(id, "-")
	generation, _ = strconv.ParseUint(number, 10, 32) // of one that is none, 0 is as good as any
	return file, generation
}

// both returns a file that two replicas have, as far as either knows it.
func both(one, other *pb.ListFilesResponse_File) *pb.ListFilesResponse_File {
	merged := &pb.ListFilesResponse_File{
		Pod: cmp.Or(one.GetPod(), other.GetPod()), PodUid: one.GetPodUid(), Id: one.GetId(), Path: one.GetPath(), Kind: one.GetKind(),
		Size: max(one.GetSize(), other.GetSize()), Ended: one.GetEnded() || other.GetEnded(), Last: max(one.GetLast(), other.GetLast()),
	}
	// A range that one lacks is missing where the other one lacks it too, or has not come so far.
	for _, gap := range one.GetMissing() {
		merged.Missing = append(merged.Missing, lacking(gap, other)...)
	}
	for _, gap := range other.GetMissing() {
		for _, part := range lacking(gap, one) {
			if part.GetOffset() >= one.GetSize() {
				merged.Missing = append(merged.Missing, part)
			}
		}
	}
	return merged
}

// lacking returns the parts of a gap that another replica's file lacks.
func lacking(gap *pb.Missing, file *pb.ListFilesResponse_File) []*pb.Missing {
	var parts []*pb.Missing
	add := func(begin, end int64) {
		begin, end = max(begin, gap.GetOffset()), min(end, endOfGap(gap))
		switch {
		case begin >= end:
		case end == endless:
			parts = append(parts, &pb.Missing{Offset: begin, Reason: gap.GetReason()})
		default:
			parts = append(parts, &pb.Missing{Offset: begin, Length: end - begin, Reason: gap.GetReason()})
		}
	}
	for _, its := range file.GetMissing() {
		add(its.GetOffset(), min(endOfGap(its), file.GetSize()))
	}
	add(file.GetSize(), endless)
	return parts
}

// endOfGap returns where a gap ends.
func endOfGap(gap *pb.Missing) int64 { return Piece{Offset: gap.GetOffset(), Missing: gap}.End() }
