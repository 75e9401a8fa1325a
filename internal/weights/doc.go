// Package weights reads and writes models as they lie on disk: Hugging Face
// folders (config.json, safetensors, one file or sharded), GGUF files, peft
// adapters, and checkpoint folders that are whole or absent, never half.
//
// [Open] checks everything a header can tell, so that a model which opens can
// be computed with; [Model.Read] dequantises one tensor at a time into float32
// under its Hugging Face name and layout. Files are read in pieces, not mapped:
// every tensor is widened to float32 anyway, a file cut short under a running
// process is then an error and not a signal, and Windows needs no second way.
//
// The safetensors format is read here and not by a library because the same
// table of tensors serves GGUF, the errors name file and tensor, and tensors
// are written as a stream without a second copy of the model in memory.
package weights
