// Package weights reads and writes models on disk: Hugging Face folders
// (config.json and safetensors, in one file or sharded), GGUF files, peft adapters
// and checkpoint folders. Folders are written atomically.
//
// [Open] validates everything in the headers, so that a model which opens can be
// used; [Model.Read] dequantises one tensor at a time into float32 under its
// Hugging Face name and layout. Files are read in pieces rather than mapped: every
// tensor is widened to float32 anyway, a file truncated under a running process is
// an error instead of a signal, and Windows needs no separate code.
//
// The package has its own safetensors reader so that safetensors and GGUF share
// one tensor table, errors name file and tensor, and tensors are written as a
// stream without a second copy of the model in memory.
package weights
